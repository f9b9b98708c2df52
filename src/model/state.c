#include "model/state.h"

uint64_t pl__state_token_bytes2(const pl_config *c)
{
    uint64_t sum = 0, entry = pl_entry_bytes(c->head_dim) + pl_key_bytes(c->index_dim);
    for (int l = 0; l < c->layers; l++)
        if (pl_config_owns_kv(c, l))
            sum += 2 * entry / (uint64_t)c->ratio[l];
    return sum;
}

static pl_status take_ring(pl__taker *t, pl_ring *ring, int slots, int length, size_t row_bytes, const char *what,
                           pl_error *err)
{
    *ring = (pl_ring){.length = length, .row_bytes = row_bytes};
    PL_TAKE(t, ring->data, (size_t)slots * (size_t)length * row_bytes, what, err);
    return PL_OK;
}

static pl_status take_rings(pl__state *s, pl__taker *t, const pl_config *c, const pl_model_settings *set, pl_error *err)
{
    int most = set->piece > PL_WINDOW_ROWS ? set->piece : PL_WINDOW_ROWS;
    pl_ring counted;
    for (int l = 0; l < c->layers; l++)
        PL_TRY(take_ring(t, s->window ? &s->window[l] : &counted, set->slots, c->window + most,
                         pl_window_row_bytes(c->head_dim), "window rings", err));
    for (int l = 0; l < c->layers; l++)
        if (pl_config_owns_kv(c, l) && c->ratio[l] == 2)
            PL_TRY(take_ring(t, s->pairs ? &s->pairs[l] : &counted, set->slots, most + 2,
                             2 * sizeof(float) * (size_t)c->head_dim, "pair rings", err));
    if (!c->stages)
        return PL_OK;
    for (int i = 0; i < c->stages; i++)
        PL_TRY(take_ring(t, s->draft ? &s->draft[i] : &counted, set->slots, c->window, pl_window_row_bytes(c->head_dim),
                         "draft rings", err));
    return take_ring(t, &s->taps, set->slots, c->window + PL_WINDOW_ROWS,
                     sizeof(pl_bf16) * (size_t)c->taps * (size_t)c->hidden, "tap ring", err);
}

/* The order of owners in a page is the order of layers; entries first, then keys. */
static void lay_out_pages(pl__state *s, const pl_config *c)
{
    size_t at = 0;
    for (int l = 0; l < c->layers; l++) {
        if (!pl_config_owns_kv(c, l))
            continue;
        int per_page = PL_PAGE_TOKENS / c->ratio[l];
        pl_entries e = {.page = s->page, .pages = s->pages, .per_page = per_page, .ratio = c->ratio[l]};
        e.entry_offset = at;
        at += (size_t)per_page * pl_entry_bytes(c->head_dim);
        e.key_offset = at;
        at += (size_t)per_page * pl_key_bytes(c->index_dim);
        if (s->entries)
            s->entries[l] = e;
    }
    s->page_bytes = pl_arena_need(at);
}

pl_status pl__state_take(pl__state *s, pl__taker *t, const pl_config *c, const pl_model_settings *set, pl_error *err)
{
    *s = (pl__state){.pages = (set->context + PL_PAGE_TOKENS - 1) / PL_PAGE_TOKENS};
    PL_TAKE_HOST(t, s->window, c->layers, "ring table", err);
    PL_TAKE_HOST(t, s->pairs, c->layers, "ring table", err);
    PL_TAKE_HOST(t, s->draft, c->stages, "ring table", err);
    PL_TAKE_HOST(t, s->entries, c->layers, "entry table", err);
    size_t pages = (size_t)set->slots * (size_t)s->pages;
    PL_TAKE_HOST(t, s->page, pages, "page table", err);
    PL_TAKE_HOST(t, s->token, (size_t)set->slots * (size_t)set->context, "token history", err);
    PL_TAKE_HOST(t, s->slot, set->slots, "slots", err);
    PL_TRY(take_rings(s, t, c, set, err));
    lay_out_pages(s, c);
    if (!s->page_bytes) {
        s->page_bytes = PL_ARENA_ALIGN; /* no owner at all: an address is still an address */
    }
    PL_TAKE(t, s->pool, pages * s->page_bytes, "pages of compressed entries", err);
    if (s->page && s->pool)
        for (size_t i = 0; i < pages; i++)
            s->page[i] = s->pool + i * s->page_bytes;
    return PL_OK;
}
