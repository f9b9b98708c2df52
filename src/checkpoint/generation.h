/* generation_config.json: how the makers of a checkpoint would have it drawn from, and where its replies end. The
 * fields are Hugging Face's, and `thinking`, ours: whether chat replies reason first when nobody says. Every field may
 * be missing. This is the only reader of the file. */
#ifndef PL_CHECKPOINT_GENERATION_H
#define PL_CHECKPOINT_GENERATION_H

#include "base/status.h"

enum {
    PL_GEN_TEMPERATURE = 1 << 0,
    PL_GEN_TOP_K = 1 << 1,
    PL_GEN_TOP_P = 1 << 2,
    PL_GEN_MIN_P = 1 << 3,
    PL_GEN_REPETITION = 1 << 4,
    PL_GEN_THINKING = 1 << 5
};

enum { PL_GEN_EOS_MAX = 16 };

typedef struct pl_generation {
    unsigned has;      /* which of these the file names */
    float temperature; /* 0..2, as in a request; 0 also where do_sample is false, whatever temperature the file gives */
    int top_k;         /* 0 (off) or more; -1 in the file is read as 0 */
    float top_p;       /* above 0, at most 1 */
    float min_p;       /* 0..1 */
    float repetition_penalty; /* above 0, at most 100 */
    bool thinking;
    int eos_count;               /* end tokens: any of them ends a reply; 0 where the file names none */
    int32_t eos[PL_GEN_EOS_MAX]; /* each from 0, in the file's order, none twice */
} pl_generation;

/* Read the text. eos_token_id is one id or a list of up to PL_GEN_EOS_MAX of them. A known field of another type or out
 * of range, text that is not one JSON object, a name given twice: PL_EFORMAT naming the field (parameter) and what was
 * found. null counts as missing, unknown fields are left alone.
 * `where` names the source in messages. *out is set in every case (to nothing named, on failure). */
pl_status pl_generation_parse(pl_generation *out, const char *json, size_t len, const char *where, pl_error *err);

/* The same from a file of at most 1 MiB. A file that is not there names nothing: PL_OK. PL_EIO, PL_ELIMIT. */
pl_status pl_generation_load(pl_generation *out, const char *path, pl_error *err);

#endif
