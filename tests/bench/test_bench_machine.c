/* The machine's state from files that are known, and what disturbs a run. */
#include "base/check.h"
#include "base/file.h"
#include "bench/machine.h"

#include <math.h>
#include <sys/stat.h>

static char root[64];

static void put(const char *name, const char *text)
{
    char path[256];
    pl_error err;
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    assert_int_equal(pl_file_put(path, text, strlen(text), &err), PL_OK);
}

static void readings(void **state)
{
    (void)state;
    pl_bench_machine m;
    make_folder(root);
    pl_bench_machine_read(&m, root);
    assert_true(isnan(m.load1) && isnan(m.mhz) && isnan(m.celsius) && isnan(m.available_mib) && isnan(m.throttles));
    assert_false(m.has_ticks);
    put("proc/loadavg", "1.25 0.50 0.10 2/91 20760\n");
    put("proc/meminfo", "MemTotal:  4096 kB\nMemAvailable:    2048 kB\n");
    put("proc/stat", "cpu  100 10 50 800 20 5 5 10 3 0\ncpu0 1 2 3\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n");
    put("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4\n");
    put("sys/class/thermal/thermal_zone0/temp", "45500\n");
    put("sys/class/thermal/thermal_zone1/temp", "61000\n");
    pl_bench_machine_read(&m, root);
    assert_true(m.load1 == 1.25 && m.available_mib == 2 && m.mhz == 2500 && m.celsius == 61 && m.throttles == 4);
    assert_true(m.has_ticks && m.busy == 170 && m.steal == 10 && m.total == 1000);
    put("proc/stat", "cpu  rubbish\n");
    pl_bench_machine_read(&m, root);
    assert_false(m.has_ticks);
}

static void ticks_of_a_group(void **state)
{
    (void)state;
    make_folder(root);
    put("proc/10/stat", "10 (a) S 1 77 77 0 -1 0 0 0 0 0 5 6 7 8 20 0 1 0\n");
    put("proc/11/stat", "11 (odd) S 9) name) R 1 77 77 0 -1 0 0 0 0 0 100 0 0 0 20 0\n");
    put("proc/12/stat", "12 (b) S 1 78 78 0 -1 0 0 0 0 0 1000 0 0 0 20 0\n");
    put("proc/13/stat", "13 (cut");
    put("proc/self/stat", "10 (a) S 1 77 77 0 -1 0 0 0 0 0 5 6 7 8 20 0 1 0\n");
    assert_true(pl_bench_group_ticks(root, 77) == 126);
    assert_true(pl_bench_group_ticks(root, 79) == 0);
    assert_true(pl_bench_group_ticks("/nonexistent", 77) == 0);
    assert_true(pl_bench_own_ticks() >= 0);
}

static pl_bench_machine at(double busy, double steal, double total)
{
    return (pl_bench_machine){.has_ticks = true, .busy = busy, .steal = steal, .total = total, .celsius = 50};
}

static pl_bench_around quiet(void)
{
    return (pl_bench_around){.before = {at(0, 0, 0), at(1, 0, 100)},
                             .during = {at(1, 0, 100), at(501, 5, 1100)},
                             .after = {at(501, 5, 1100), at(505, 5, 1200)},
                             .known = 450};
}

static void what_disturbs(void **state)
{
    (void)state;
    pl_bench_limits limits = {.busy = 0.1, .celsius = 90};
    pl_bench_around a = quiet();
    char why[200];
    assert_false(pl_bench_disturbed(&a, &limits, why));
    assert_string_equal(why, "");
    a.before[1].busy = 20;
    assert_true(pl_bench_disturbed(&a, &limits, why));
    assert_non_null(strstr(why, "before the server started"));
    a = quiet();
    a.known = 350;
    assert_true(pl_bench_disturbed(&a, &limits, why));
    assert_non_null(strstr(why, "others had 15.0%"));
    a = quiet();
    a.during[1].steal = 200;
    assert_true(pl_bench_disturbed(&a, &limits, why));
    assert_non_null(strstr(why, "stolen"));
    a = quiet();
    a.after[1].busy = 550;
    assert_true(pl_bench_disturbed(&a, &limits, why));
    assert_non_null(strstr(why, "after the server ended"));
    a = quiet();
    a.during[1].throttles = 1;
    assert_true(pl_bench_disturbed(&a, &limits, why));
    assert_non_null(strstr(why, "heat"));
    a = quiet();
    a.after[0].celsius = 91;
    assert_true(pl_bench_disturbed(&a, &limits, why));
    assert_non_null(strstr(why, "91.0"));
}

/* What cannot be read is said to be unknown, and disturbs nothing. */
static void the_unknown(void **state)
{
    (void)state;
    pl_bench_limits limits = {.busy = 0, .celsius = 0};
    pl_bench_around a;
    char why[200];
    for (int i = 0; i < 2; i++) {
        pl_bench_machine_read(&a.before[i], "/nonexistent");
        pl_bench_machine_read(&a.during[i], "/nonexistent");
        pl_bench_machine_read(&a.after[i], "/nonexistent");
    }
    a.known = 5;
    assert_false(pl_bench_disturbed(&a, &limits, why));
    json_t *json = pl_bench_around_json(&a);
    assert_int_equal(json_array_size(json_object_get(json, "unknown")), 6);
    assert_true(json_is_null(json_object_get(json_object_get(json, "start"), "busy_share")));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings),
        cmocka_unit_test(ticks_of_a_group),
        cmocka_unit_test(what_disturbs),
        cmocka_unit_test(the_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
