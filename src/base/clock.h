/* Time, for people, timeouts and measurements. No token ever depends on it. */
#ifndef PL_BASE_CLOCK_H
#define PL_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds. */
int64_t pl_now_ns(void);
/* Wall clock, seconds since 1970. */
int64_t pl_wall_seconds(void);

#endif
