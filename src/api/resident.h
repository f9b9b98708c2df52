/* The memory that a running engine takes beyond the mapped weights: what `inspect` prints and `serve` says at its
 * start, made of the figures of those who reserve it. docs/internals/memory.md. */
#ifndef PL_API_RESIDENT_H
#define PL_API_RESIDENT_H

#include "model/plan.h"
#include "text/tokenizer.h"

/* What the program takes with everything else at zero, measured: 0.3 to 0.4 MiB for pages of its libraries that the
 * loader writes, the network's and the C library's own; and a thread's stack and control block as far as they are
 * touched. */
enum { PL_PROGRAM_BYTES = 464 << 10, PL_THREAD_BYTES = 12 << 10 };

/* Bytes. */
typedef struct pl_resident {
    pl_plan model;
    uint64_t tensor_table; /* the checkpoint's own: names and places of tensors */
    uint64_t tokenizer;    /* 0 without one */
    uint64_t lanes;        /* what the engine reserves for them: draws, contexts, rounds */
    uint64_t program;
    uint64_t total; /* all of it */
} pl_resident;

/* The account for resolved settings. tensor_table: pl_checkpoint_info's heap, or pl_checkpoint_table_bytes. tokenizer
 * may be NULL: not counted. PL_ELIMIT when a size overflows. */
pl_status pl_resident_plan(pl_resident *resident, const pl_config *config, const pl_model_settings *settings,
                           uint64_t tensor_table, const pl_tokenizer *tokenizer, pl_error *err);

/* How many replies to make at once when nobody says: 8, or as many fewer as keep their states within a quarter of the
 * machine's memory, at least 1. settings->slots is not read. The errors of pl_model_plan. */
pl_status pl_resident_parallel(int *slots, const pl_config *config, const pl_model_settings *settings, pl_error *err);

#endif
