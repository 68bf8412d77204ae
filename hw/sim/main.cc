/* SPDX-License-Identifier: BSD-2-Clause */

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "options.h"

namespace {

std::atomic<bool> stop = false;

/* Put /dev/null in place of each standard stream that is closed. Otherwise a socket would get its
 * number, and a client the text that is printed. */
void occupy_streams()
{
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDWR) != stream)
            throw std::runtime_error("/dev/null cannot be opened");
}

void print_usage()
{
    if (fputs(dibber::usage, stdout) < 0 || fflush(stdout) != 0)
        throw std::runtime_error(std::string("the standard output cannot be written: ") +
                                 strerror(errno));
}

/* What --set makes of a good profile is a mistake of the command line. */
dibber::Profile read_profile(const dibber::Options& options)
{
    try {
        return dibber::read_profile(options.profile, options.overrides);
    } catch (const dibber::ProfileError& error) {
        if (!options.overrides.empty()) {
            dibber::read_profile(options.profile);
            throw dibber::UsageError(error.what());
        }
        throw;
    }
}

int run(const dibber::Options& options)
{
    if (options.socket_directory.empty())
        throw dibber::UsageError("--socket-dir is missing");
    dibber::Profile profile = read_profile(options);
    dibber::survive_truncated_files();
    signal(SIGTERM, [](int) { stop = true; });
    signal(SIGINT, [](int) { stop = true; });
    /* Who starts it with nohup wants it to go on. */
    if (signal(SIGHUP, [](int) { stop = true; }) == SIG_IGN)
        signal(SIGHUP, SIG_IGN);
    dibber::Simulation simulation(profile, options);
    printf("ready\n");
    fflush(stdout);
    simulation.run(stop);
    simulation.close_timeline();

    if (options.stats.empty())
        return 0;
    std::string text = simulation.statistics();
    std::FILE* file = std::fopen(options.stats.c_str(), "w");
    if (!file)
        throw std::runtime_error("statistics " + options.stats + ": " + strerror(errno));
    bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !good)
        throw std::runtime_error("statistics " + options.stats + ": could not be written");
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        occupy_streams();
        bool help;
        dibber::Options options = dibber::parse_options(argc, argv, help);
        if (help)
            return print_usage(), 0;
        return run(options);
    } catch (const dibber::UsageError& error) {
        fprintf(stderr, "dibber-sim: %s (--help shows the options)\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        fprintf(stderr, "dibber-sim: %s\n", error.what());
        return 1;
    }
}
