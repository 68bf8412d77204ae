"""gettimeofday() in simulated time (software/ofi/wtime), with a provider that a test made."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import subprocess

import pytest
from dibber_cli import paths

# The first call has read its time, and comes back after a later one could.
PROVIDER = """
#include <stdint.h>
#include <unistd.h>

uint64_t dibber_fi_now_ps(void)
{
	static int calls;

	if (__atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST))
		return 5000000000000;
	usleep(300000);
	return 1000000;
}
"""

PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static double seconds(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return (double)now.tv_sec + (double)now.tv_usec * 1e-6;
}

static void *early(void *result)
{
	*(double *)result = seconds();
	return NULL;
}

int main(int argc, char **argv)
{
	/* The declaration forbids NULL; programs give it all the same. */
	struct timeval *volatile nowhere = NULL;
	double first = 0, second;
	pthread_t thread;

	if (argc > 1 && !strcmp(argv[1], "nowhere"))
		return gettimeofday(nowhere, NULL);
	if (!dlopen(argv[1], RTLD_NOW))
		return 2;
	pthread_create(&thread, NULL, early, &first);
	usleep(100000);
	second = seconds();
	pthread_join(thread, NULL);
	printf("%f\\n", second - first);
	return 0;
}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the program with one argument."""
    folder = tmp_path_factory.mktemp("wtime")

    def build(name, source, *options):
        command = ["cc", "-O2", "-pthread", "-o", folder / name, *options, source, "-ldl"]
        subprocess.run(list(map(str, command)), check=True, timeout=60)

    for name, text in (("provider.c", PROVIDER), ("program.c", PROGRAM)):
        (folder / name).write_text(text, encoding="utf-8")
    wtime = paths.ROOT / "software" / "ofi" / "wtime" / "wtime.c"
    build("wtime.so", wtime, "-shared", "-fPIC", "-D_POSIX_C_SOURCE=200809L")
    build("libdibber-fi.so", folder / "provider.c", "-shared", "-fPIC")
    build("program", folder / "program.c", "-Wno-nonnull")
    environment = {
        **os.environ,
        "LD_PRELOAD": str(folder / "wtime.so"),
        "FI_PROVIDER_PATH": str(folder),
    }

    def call(argument):
        return subprocess.run(
            [folder / "program", argument or folder / "libdibber-fi.so"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return call


def test_gettimeofday_without_a_place_for_the_time_writes_nothing(run):
    assert run("nowhere").returncode == 0


def test_two_threads_that_first_ask_together_get_times_in_order(run):
    done = run("")
    assert done.returncode == 0, done.stderr
    # 5 s less 1 us of simulated time.
    assert float(done.stdout) == pytest.approx(5, abs=1e-3)
