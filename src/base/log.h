/* One line a message, on standard error: "paceline: warning: text". Safe from any thread; never waits for a reader:
 * where standard error is a pipe that is full, lines are lost, and the next one that is not tells how many. */
#ifndef PL_BASE_LOG_H
#define PL_BASE_LOG_H

typedef enum pl_log_level { PL_LOG_ERROR, PL_LOG_WARNING, PL_LOG_INFO, PL_LOG_DEBUG } pl_log_level;

/* Messages above this level are dropped; the default is PL_LOG_INFO. */
void pl_log_set_level(pl_log_level level);
void pl_log(pl_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
