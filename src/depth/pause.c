/* The drafter rests when it loses. Copied drafts cost no pass and go on.
 *
 * The account: a round with a pass gives `tokens` and takes `ms`; plain rounds would have needed plain_ms for each
 * `lanes` tokens. The difference, in ms, is summed up since asking began. It may lose a few rounds' worth before it
 * counts as a loss; then the drafter rests, twice as long after each rest that did not help, so that a text where
 * drafts never land pays ever less for trying. */
#include "depth/depth_int.h"

#include <math.h>

enum { TRIAL = 2, PROVEN = 48, FIRST_REST = 32, MOST_STRIKES = 6 };
static const double LOSS_ROUNDS = 2, HOARD_ROUNDS = 8;

bool pl__pause_now(const pl__pause *pause)
{
    return pause->rest > 0;
}

void pl__pause_saw(pl__pause *pause, bool passed, double tokens, double ms, int lanes, double plain_ms)
{
    if (!passed) {
        if (pause->rest && --pause->rest == 0)
            *pause = (pl__pause){.strikes = pause->strikes, .rounds = pause->rounds};
        return;
    }
    pause->trial++;
    pause->gain += tokens * plain_ms / lanes - ms;
    /* What was won long ago must not pay for losing now. */
    pause->gain = fmin(pause->gain, HOARD_ROUNDS * plain_ms);
    if (pause->trial >= PROVEN && pause->gain > 0)
        pause->strikes = 0;
    if (pause->trial < TRIAL || pause->gain > -LOSS_ROUNDS * plain_ms)
        return;
    pause->rest = FIRST_REST << pause->strikes;
    pause->strikes += pause->strikes < MOST_STRIKES;
}
