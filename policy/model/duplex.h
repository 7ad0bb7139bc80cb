/*
 * Links that slow each other down: which rates a plan is to be made for.
 *
 * The execution model has one rate per direction. Where a direction is slower while the other one
 * is busy, too, what a plan's copies take on average depends on how often the plan has both busy at
 * once. So the plan is timed, and each direction gets the mean of its two rates, weighted by the
 * share of its time in which the other direction also copies. With these rates the shares are a
 * little different, so this is repeated a few times. A plan made for these rates is then likely to
 * have similar shares.
 */
#ifndef CAPU_POLICY_DUPLEX_H
#define CAPU_POLICY_DUPLEX_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/model/program.h"

/* Rates while the other direction is busy, in bytes per second; 0: not known. */
struct duplex {
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
};

/* Whether a direction of the machine is known to be slower then. */
bool duplex_matters(const struct duplex *duplex, const struct machine *solo);

/*
 * *machine becomes `solo` with the rates that the plan's copies have on average. They are solo's if
 * that does not matter. Pre: solo has rates; the plan is valid. Errors: those of timeline_of.
 */
capu_status duplex_rates(const struct program *program, const struct machine *solo,
                         const struct duplex *duplex, struct machine *machine,
                         struct error_text *error);

#endif
