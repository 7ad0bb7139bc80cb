/* A page about a plan: what its simulation shows. */
#include "tools/page_plan.h"

#include "tools/say.h"
#include "tools/view.h"

#include "policy/bound.h"

bool page_write_plan(const char *path, struct page *page, const struct plan *plan)
{
    const struct subject *subject = page->subject;
    struct error_text error = {""};
    struct view view;
    bool is_fine;

    if (view_of_plan(&view, &subject->trace_index, plan, &subject->machine, &error) != CAPU_OK) {
        say_error(&error);
        return false;
    }
    page->planned = &view;
    page->bound_ns = bound_iteration(&subject->trace_index, &subject->machine, plan->budget_bytes);
    is_fine = page_write(path, page);
    page->planned = NULL;
    view_finish(&view);
    return is_fine;
}
