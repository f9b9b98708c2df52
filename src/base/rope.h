/* Rope frequency tables. Model spec sections 1.2 and 8, item 1. */
#ifndef PL_BASE_ROPE_H
#define PL_BASE_ROPE_H

/* YaRN scaling of a table (rope_scaling of config.json). */
typedef struct pl_rope_yarn {
    double factor, beta_fast, beta_slow;
    int original; /* original_max_position_embeddings */
} pl_rope_yarn;

/* freq[dims / 2]: 1 / theta^(2i / dims), then YaRN when yarn is not NULL. Every step in float32 as the reference takes
 * it; for the release's tables (64 dims) bit for bit the table of the GPU it was trained and run on. dims even,
 * 2..4096. */
void pl_rope_frequencies(float *freq, int dims, double theta, const pl_rope_yarn *yarn);

#endif
