/* A log that nobody reads loses lines and holds nobody up. */
#include "base/check.h"
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

static void a_full_pipe_loses_lines(void **state)
{
    (void)state;
    int ends[2], kept = dup(STDERR_FILENO);
    static char text[1 << 18];
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    alarm(20); /* waiting for ever ends the test */
    for (int i = 0; i < 5000; i++)
        pl_log(PL_LOG_INFO, "line %d of many, none of which is read", i);
    alarm(0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    size_t len = 0;
    for (ssize_t n; (n = read(ends[0], text + len, sizeof text - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    assert_non_null(strstr(text, "paceline: line 0 of many"));
    assert_null(strstr(text, "line 4999 of many"));
    assert_true(text[len - 1] == '\n'); /* none is cut */
    pl_log(PL_LOG_WARNING, "read again");
    ssize_t n = read(ends[0], text, sizeof text - 1);
    dup2(kept, STDERR_FILENO);
    assert_true(n > 0);
    text[n] = '\0';
    unsigned long lost = 0;
    assert_int_equal(sscanf(text, "paceline: warning: %lu lines before", &lost), 1);
    assert_true(lost > 1000 && lost < 5000);
    assert_non_null(strstr(text, "paceline: warning: read again\n"));
    close(ends[0]);
    close(ends[1]);
    close(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_pipe_loses_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
