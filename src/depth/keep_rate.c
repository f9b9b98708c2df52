#include "depth/keep_rate.h"

#include <math.h>

static const double FADE = 0.97, MOST = 0.995, LEAST_FACTOR = 0.2, MOST_FACTOR = 3, PRIOR = 2;

static double promised(float confidence)
{
    return isnan(confidence) ? 0 : 1 / (1 + exp(-(double)confidence));
}

double pl_keep_chance(const pl_keep_rate *rate, bool sampled, int position, float confidence)
{
    double factor = (rate->kept[sampled][position] + PRIOR) / (rate->said[sampled][position] + PRIOR);
    double chance = promised(confidence) * fmin(fmax(factor, LEAST_FACTOR), MOST_FACTOR);
    return fmin(chance, MOST);
}

void pl_keep_saw(pl_keep_rate *rate, bool sampled, int position, float confidence, bool kept)
{
    double *k = &rate->kept[sampled][position], *s = &rate->said[sampled][position];
    *k = FADE * *k + kept;
    *s = FADE * *s + promised(confidence);
}
