/* A page about a plan: what its simulation shows. */
#include "tools/page/page_plan.h"

#include "tools/output/say.h"
#include "tools/view/view.h"

#include "policy/bound/bound.h"
#include "policy/model/validate.h"

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

bool page_load_plan(struct view *view, const struct subject *subject, const char *path)
{
    struct trace_index trace_index = {0};
    struct error_text error = {""};
    struct plan plan = {0};
    capu_status status = plan_load(&plan, path, &error);

    *view = (struct view){0};
    if (status == CAPU_OK) {
        status = trace_index_init(&trace_index, &subject->trace, plan.page_bytes, &error);
    }
    if (status == CAPU_OK) {
        status = validate_plan(&trace_index, &plan, &error);
    }
    if (status == CAPU_OK) {
        status = view_of_plan(view, &trace_index, &plan, &subject->machine, &error);
    }
    if (status != CAPU_OK) {
        say_error(&error);
    }
    trace_index_finish(&trace_index);
    plan_finish(&plan);
    return status == CAPU_OK;
}
