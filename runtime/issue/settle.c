/* Taking note of work that has passed, see settle.h. */
#include "runtime/issue/settle.h"

#include "runtime/context/failure.h"
#include "runtime/issue/whole.h"
#include "runtime/plan/planning.h"

/* Without iterations nothing retires the lanes' marks: do it every so many calls. */
enum { UNRECORDED_LIMIT = 4096 };

capu_status settle_records(capu_context *context)
{
    capu_status status = tracker_settle(&context->records);

    planning_review(&context->plans); /* records that were completed before a failure, too */
    return status;
}

capu_status settle_work(capu_context *context)
{
    struct lane *lanes[] = {&context->lanes.compute, &context->lanes.d2h, &context->lanes.h2d};
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]) && status == CAPU_OK; i++) {
        status = lane_synchronize(lanes[i]);
    }
    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "waiting for the device");
    }
    status = settle_records(context);
    if (status == CAPU_OK) {
        status = departures_reap(&context->residency);
    }
    if (status != CAPU_OK || context->iteration.is_open) {
        return status;
    }
    traffic_settle(&context->records);
    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
        lane_retire((struct lane_position){.lane = lanes[i], .sequence = lanes[i]->marked});
    }
    staging_restart(&context->lanes.staging);
    context->lanes.unrecorded_ops = 0;
    return CAPU_OK;
}

/* Whether a plan may come from an iteration that ends on the device while this one, without a plan,
   is open. With wait_for_plan, plans do not depend on when that is. */
static bool is_plan_awaited(const capu_context *context)
{
    return context->plans.keeper != NULL && context->guided.active == NULL &&
           context->settings.config.wait_for_plan == 0;
}

capu_status settle_call(capu_context *context)
{
    /* The caller's own work is done: what fails here and is no loss is tried again next time. */
    if (context->iteration.is_open) {
        if (!is_plan_awaited(context)) {
            return CAPU_OK;
        }
        settle_records(context);
    } else {
        if (++context->lanes.unrecorded_ops < UNRECORDED_LIMIT) {
            return CAPU_OK;
        }
        settle_work(context);
    }
    return context->failure.lost;
}
