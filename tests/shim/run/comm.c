/* A program that makes communicators of NCCL, of as many ranks as its argument says. It is linked
   with the library, as such programs are; for tests, with nccl.c beside it. */
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    char internal[128];
} ncclUniqueId;

int ncclCommInitRank(void **comm, int ranks, ncclUniqueId id, int rank);
int ncclCommInitAll(void **comms, int devices, const int *list);

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 1;
    ncclUniqueId id = {{'i', 'd'}};
    void *comms[8] = {NULL};
    int result;

    result = ncclCommInitRank(&comms[0], ranks, id, 0);
    printf("rank %d %s\n", result, comms[0] != NULL ? (char *)comms[0] : "none");
    result = ncclCommInitAll(comms, ranks, NULL);
    printf("all %d\n", result);
    return 0;
}
