#include "lanes/queue.h"

#include <stdlib.h>

static int kind(const pl_stream *s)
{
    return s->request.background;
}

void pl__queue_add(pl__queue *q, pl_stream **streams, size_t n, pl__ticket *ticket)
{
    ticket->waiting = n;
    for (size_t i = 0; i < n; i++) {
        pl_stream *s = streams[i];
        int k = kind(s);
        s->next = NULL;
        s->waiting = true;
        s->ticket = ticket;
        *(q->last[k] ? &q->last[k]->next : &q->first[k]) = s;
        q->last[k] = s;
    }
    q->waiting += n;
    q->tickets++;
}

void pl__queue_return(pl__queue *q, pl_stream *s)
{
    int k = kind(s);
    s->waiting = true;
    s->next = q->first[k];
    q->first[k] = s;
    if (!q->last[k])
        q->last[k] = s;
    q->waiting++;
}

static void left(pl__queue *q, pl_stream *s)
{
    s->next = NULL;
    s->waiting = false;
    q->waiting--;
    if (s->ticket && --s->ticket->waiting == 0) {
        free(s->ticket);
        q->tickets--;
    }
    s->ticket = NULL;
}

pl_stream *pl__queue_take(pl__queue *q)
{
    int k = q->first[0] ? 0 : 1;
    pl_stream *s = q->first[k];
    if (s)
        pl__queue_remove(q, s);
    return s;
}

void pl__queue_remove(pl__queue *q, pl_stream *s)
{
    int k = kind(s);
    pl_stream *before = NULL;
    for (pl_stream *at = q->first[k]; at != s; at = at->next)
        before = at;
    *(before ? &before->next : &q->first[k]) = s->next;
    if (q->last[k] == s)
        q->last[k] = before;
    left(q, s);
}

bool pl__queue_foreground(const pl__queue *q)
{
    return q->first[0];
}
