/* What the cmocka programs share: the includes that cmocka.h needs, and a temporary folder. */
#ifndef PL_TESTS_BASE_CHECK_H
#define PL_TESTS_BASE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Assert that a call fails with this status and that the error object says so, with a message. */
#define assert_fails(status_, err_, call)                                                                              \
    do {                                                                                                               \
        memset((err_), 0x55, sizeof *(err_));                                                                          \
        assert_int_equal((call), (status_));                                                                           \
        assert_int_equal((err_)->status, (status_));                                                                   \
        assert_true((err_)->message[0] != '\0');                                                                       \
        assert_non_null(memchr((err_)->message, '\0', 512));                                                           \
    } while (0)

/* A fresh folder; `path` must hold 64 bytes. */
static inline void make_folder(char *path)
{
    snprintf(path, 64, "/tmp/paceline-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

#endif
