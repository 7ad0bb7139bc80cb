/* Leaving the guide in force: the rest of the iteration is passive, and recovery begins. */
#ifndef CAPU_RUNTIME_LEAVE_H
#define CAPU_RUNTIME_LEAVE_H

#include "capuchin/context.h"

/* Ends the guide's force; inside an iteration recovery begins. Waits for all work. */
capu_status leave_guide(capu_context *context);

/* Takes the guide in force out of force: tensors that hold their pages keep them as their own.
   Whatever the device says, no guide is in force afterwards. */
capu_status leave_uninstall(capu_context *context);

#endif
