/* The options of train_gpt. */
#ifndef CAPU_EXAMPLES_TRAIN_GPT_SETTINGS_H
#define CAPU_EXAMPLES_TRAIN_GPT_SETTINGS_H

#include "examples/common/options.h"

#include "examples/train_gpt/gpt.h"

#include <stdbool.h>
#include <stdint.h>

struct settings {
    struct options options;
    struct gpt_shape shape;
    const char *data;
    float rate;
    uint32_t default_vocabulary; /* without --vocab */
    uint32_t accumulate;
    uint32_t ranks;    /* processes of this run */
    uint32_t replicas; /* by which the batch is divided; with several ranks, their number */
    uint64_t bucket_bytes;
    uint32_t limit_s;        /* how long a rank waits for others; 0: no limit */
    uint32_t other_length;   /* of the sequences in every second step; 0: the same */
    uint32_t segment_layers; /* 0: no segments */
    uint32_t sample_bytes;
    bool is_asap;
    bool has_graphs; /* steps are captured as CUDA graphs */
};

/* The defaults for so many ranks, and what argv changes. Ends the program for --help and for bad
   usage. */
void settings_parse(struct settings *settings, uint32_t ranks, int argc, char **argv);

#endif
