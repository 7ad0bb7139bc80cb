/*
 * The books of a graph (graph.h): the state in which it begins and ends, and the record of a
 * launch.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_GRAPH_BOOKS_H
#define CAPU_RUNTIME_GRAPH_BOOKS_H

#include "device/lane.h"
#include "runtime/lanes/graph.h"

struct following;
struct record;

/* Frees a graph. Pre: no launch of it is under way. */
void graph_free(struct following *following, capu_graph *graph);

/* Notes the state in which the iteration under the active guide begins.
   NO_HOST_MEMORY. */
capu_status graph_note_begin(struct following *following, capu_graph *graph);

/* Notes the state in which it ended, and its report. Pre: its record has been closed.
   NO_HOST_MEMORY. */
capu_status graph_note_end(struct following *following, capu_graph *graph, struct record *record);

/* Whether tensors are as they were at the beginning. NULL: they are. Otherwise the tensor that is
   not, and *why. */
struct tensor *graph_find_change(const capu_graph *graph, const char **why);

/* After a launch whose work ends at the position: makes tensors what they were at the end. */
void graph_settle(struct following *following, capu_graph *graph, struct lane_position end);

/* Fills in the record of a launch. NO_HOST_MEMORY. */
capu_status graph_fill_record(const capu_graph *graph, struct record *record);

#endif
