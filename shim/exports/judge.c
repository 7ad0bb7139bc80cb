/* Which callers are refused which functions, while memory is managed. */
#include "shim/core/core.h"
#include "shim/driver/driver_calls.h"
#include "shim/driver/real.h"
#include "shim/driver/symbol.h"

#include <string.h>

LOOK_UP("symbol_judge_and_jump", "symbol_judge");

/* Wrapped functions that leave libraries of CUDA alone, see exports.c. */
static bool is_for_program(const char *name)
{
#define ALL false
#define PROGRAM true
#define PROGRAM_BYTES(bytes) true
#define FREES false
#define ROW(name, takers, parameters, arguments) {#name, takers},
#define ROW_OF_TWO(name, suffix, takers, parameters, arguments) \
    {#name, takers}, {#name #suffix, takers},
    static const struct {
        const char *name;
        bool is_for_program;
    } rows[] = {DRIVER_WRAPPED(ROW) DRIVER_WRAPPED_TWICE(ROW_OF_TWO)};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].is_for_program;
        }
    }
    return false;
}

bool symbol_is_refused(enum caller caller, const struct symbol *symbol)
{
    bool is_program = caller == CALLER_PROGRAM;

    switch (symbol->kind) {
    case SYMBOL_REFUSE:
        return true;
    case SYMBOL_REFUSE_PROGRAM:
        return is_program;
    case SYMBOL_WRAP:
        return is_program || !is_for_program(symbol->name);
    default:
        return false;
    }
}

void *symbol_judge(const struct symbol *symbol, const void *address)
{
    enum caller caller = caller_of(address);
    void *function = core_takes(caller, false) && symbol_is_refused(caller, symbol)
                         ? NULL
                         : real_find(symbol->name);

    return function != NULL ? function : symbol->refusal;
}
