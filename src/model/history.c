#include "model/history.h"

#include <stdlib.h>
#include <string.h>

size_t pl_history_bytes(int vocab)
{
    return vocab > 0 ? (size_t)vocab * (sizeof(int32_t) + sizeof(uint32_t)) : 0;
}

pl_status pl_history_open(pl_history *history, int vocab, pl_error *err)
{
    *history = (pl_history){0};
    if (vocab < 1)
        return pl_fail(err, PL_EINVAL, "a token history needs a vocabulary; found %d tokens", vocab);
    history->token = calloc((size_t)vocab, sizeof *history->token);
    history->note = calloc((size_t)vocab, sizeof *history->note);
    if (!history->token || !history->note) {
        pl_history_close(history);
        return pl_fail(err, PL_ENOMEM, "no memory for a token history of %zu bytes", pl_history_bytes(vocab));
    }
    history->vocab = vocab;
    return PL_OK;
}

void pl_history_close(pl_history *history)
{
    free(history->token);
    free(history->note);
    *history = (pl_history){0};
}

void pl_history_reset(pl_history *history)
{
    for (int i = 0; i < history->distinct; i++)
        history->note[history->token[i]] = 0;
    history->distinct = 0;
}

/* The note of id, made if there is none; NULL for an id outside the vocabulary. */
static uint32_t *note_of(pl_history *history, int32_t id)
{
    if (id < 0 || id >= history->vocab)
        return NULL;
    uint32_t *note = &history->note[id];
    if (*note == 0) {
        *note = 1;
        history->token[history->distinct++] = id;
    }
    return note;
}

void pl_history_prompt(pl_history *history, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note_of(history, ids[i]);
}

void pl_history_commit(pl_history *history, int32_t id)
{
    uint32_t *note = note_of(history, id);
    if (note && *note < UINT32_MAX)
        ++*note;
}
