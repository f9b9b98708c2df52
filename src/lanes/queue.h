/* Streams that wait for a slot: foreground ones before background ones, each in order of arrival. Guarded by the
 * engine's lock. */
#ifndef PL_LANES_QUEUE_H
#define PL_LANES_QUEUE_H

#include "lanes/stream_int.h"

/* The requests of one submission wait under one ticket: what the queue's bound counts. */
typedef struct pl__ticket {
    size_t waiting;
} pl__ticket;

typedef struct pl__queue {
    pl_stream *first[2], *last[2]; /* foreground, background */
    size_t waiting;                /* streams */
    size_t tickets;                /* submissions of which some wait */
} pl__queue;

/* All of them, in order, under the ticket, which is the queue's from now on and freed by it. */
void pl__queue_add(pl__queue *queue, pl_stream **streams, size_t n, pl__ticket *ticket);
/* One that gave its slot up: before all of its kind, and bound by nothing. */
void pl__queue_return(pl__queue *queue, pl_stream *stream);
/* The next one, no longer in the queue; NULL when none waits. */
pl_stream *pl__queue_take(pl__queue *queue);
/* One out of the middle: it waits (stream->waiting). */
void pl__queue_remove(pl__queue *queue, pl_stream *stream);
/* Does a foreground stream wait? */
bool pl__queue_foreground(const pl__queue *queue);

#endif
