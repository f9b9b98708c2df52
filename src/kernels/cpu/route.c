/* The router's choice of experts (model spec 3.7). */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

typedef struct route_job {
    pl__cpu *c;
    int32_t *id;
    float *weight;
    const float *logits, *bias;
    int experts, per_token;
    bool norm;
    float temp, scale;
} route_job;

/* The best expert not taken yet. A NaN never beats a number, and a row of NaNs still gives valid, distinct ids. */
static int best_left(const float *biased, const unsigned char *taken, int experts)
{
    int best = -1;
    for (int e = 0; e < experts; e++) {
        if (taken[e])
            continue;
        if (best < 0 || biased[e] > biased[best] || (biased[best] != biased[best] && biased[e] == biased[e]))
            best = e;
    }
    return best;
}

static void route_row(void *arg, size_t row, int thread)
{
    const route_job *j = arg;
    size_t n = (size_t)j->experts;
    float *score = (float *)(void *)j->c->mine[thread], *biased = score + n;
    unsigned char *taken = (unsigned char *)(biased + n);
    const float *logits = j->logits + row * n;
    int32_t *id = j->id + row * (size_t)j->per_token;
    float *weight = j->weight + row * (size_t)j->per_token;
    memset(taken, 0, n);
    for (size_t e = 0; e < n; e++)
        biased[e] = logits[e] / j->temp;
    j->c->math->map(PL_ROW_SOFTPLUS, score, biased, n);
    for (size_t e = 0; e < n; e++) {
        score[e] = sqrtf(score[e]);
        biased[e] = score[e] + j->bias[e];
    }
    float sum = 0;
    for (int i = 0; i < j->per_token; i++) {
        int e = best_left(biased, taken, j->experts);
        taken[e] = 1;
        id[i] = e;
        weight[i] = score[e];
        sum += score[e];
    }
    bool norm = j->norm && j->per_token > 1;
    for (int i = 0; i < j->per_token; i++)
        weight[i] = (norm ? weight[i] / (sum + 1e-20f) : weight[i]) * j->scale;
}

void pl__cpu_route(pl_kernels *k, int32_t *id, float *weight, const float *logits, const float *bias, int rows,
                   int experts, int per_token, bool norm, float temp, float scale)
{
    route_job j = {.c = pl__cpu_of(k),
                   .id = id,
                   .weight = weight,
                   .logits = logits,
                   .bias = bias,
                   .experts = experts,
                   .per_token = per_token,
                   .norm = norm,
                   .temp = temp,
                   .scale = scale};
    pl__each(j.c, (size_t)rows, (size_t)rows * (size_t)experts * (size_t)(8 + per_token), route_row, &j);
}
