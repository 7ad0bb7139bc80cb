/* The lanes together, see lanes.h. */
#include "runtime/lanes/lanes.h"

void lanes_quiesce(struct lanes *lanes, struct lane *lane)
{
    struct lane_position now;

    capture_give_up(lanes, "a call had to wait for the device");
    if (lane_synchronize(lane) != CAPU_OK && device_failure(lanes->device, NULL, 0) == CAPU_OK &&
        lane_mark(lane, &now) == CAPU_OK) {
        lane_wait(now);
    }
}

void lanes_quiesce_all(struct lanes *lanes)
{
    lanes_quiesce(lanes, &lanes->compute);
    lanes_quiesce(lanes, &lanes->d2h);
    lanes_quiesce(lanes, &lanes->h2d);
}
