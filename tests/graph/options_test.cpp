// BITALE_FLAGS, BITALE_DEBUG, BITALE_DUMP and the log.
#include "graph/base/options.h"

#include "bitale/dtype.h"
#include "bitale/error.h"
#include "graph/base/log.h"
#include "graph/base/text.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

std::string message_for(const char* flags, const char* debug = nullptr) {
    try {
        parse_options(flags, debug, nullptr);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("unset variables give the defaults") {
    const Options o = parse_options(nullptr, nullptr, nullptr);
    CHECK(o.device == "cpu");
    CHECK(o.cache);
    CHECK(o.threads == 0);
    CHECK(o.promotion == Options::Promotion::strict);
    CHECK_FALSE(o.assume_finite);
    CHECK_FALSE(o.strict_math);
    CHECK_FALSE(o.autotune);
    CHECK(o.specialise);
    CHECK(o.mode == Options::Mode::fast_run);
    CHECK(o.cpu_target == "native");
    CHECK_FALSE(o.wait_for_launches);
    CHECK_FALSE(o.compare_launches);
    CHECK_FALSE(o.debug_lines);
    CHECK_FALSE(o.debug_kernels);
    CHECK(o.dump_target == "sm_90");
    CHECK(o.debug == 0);
    CHECK(o.dump.empty());
    CHECK(o.enabled("log-softmax"));
}

TEST_CASE("flags are read one by one") {
    const Options o = parse_options(
        "device=reference, cache=off,cache_dir=/tmp/c,cache_size=2,threads=3,promotion=theano,"
        "mode=fast_compile,cpu_target=x86-64-v3,disable=log-softmax+fuse,disable=canonicalize,assume_finite="
        "on,verify=on,compiler=clang++,autotune=on,specialise=off,"
        "launches=wait,debug_lines=on,debug_kernels=on,dump_target=sm_80,tasks=smallest,loops=checked,",
        "3", "out");
    CHECK(o.device == "reference");
    CHECK_FALSE(o.cache);
    CHECK(o.cache_directory == "/tmp/c");
    CHECK(o.cache_bytes == 2 << 20);
    CHECK(o.threads == 3);
    CHECK(o.promotion == Options::Promotion::theano);
    CHECK(o.mode == Options::Mode::fast_compile);
    CHECK(o.cpu_target == "x86-64-v3");
    CHECK(o.disabled == std::set<std::string>{"canonicalize", "fuse", "log-softmax"});
    CHECK_FALSE(o.enabled("fuse"));
    CHECK(o.assume_finite);
    CHECK(o.autotune);
    CHECK_FALSE(o.specialise);
    CHECK(o.smallest_tasks);
    CHECK(o.checked_loops);
    CHECK(o.verify);
    CHECK(o.compiler == "clang++");
    CHECK(o.wait_for_launches);
    CHECK_FALSE(o.compare_launches);
    const Options compares = parse_options("launches=compare", nullptr, nullptr);
    CHECK((compares.wait_for_launches && compares.compare_launches));
    CHECK(o.debug_lines);
    CHECK(o.debug_kernels);
    CHECK(o.dump_target == "sm_80");
    CHECK(o.debug == 3);
    CHECK(o.dump == "out");
    CHECK(o.verifies());
    CHECK(parse_options("math=strict", nullptr, nullptr).strict_math);
    CHECK_FALSE(parse_options("math=usual", nullptr, nullptr).strict_math);
}

TEST_CASE("blanks around names and values do not count, and stand for no comma") {
    const Options o =
        parse_options(" device = reference , cache_dir=/tmp/my kernels ,\tthreads = 3, ", " 2 ", "");
    CHECK(o.device == "reference");
    CHECK(o.cache_directory == "/tmp/my kernels");
    CHECK(o.threads == 3);
    CHECK(o.debug == 2);
    CHECK_THAT(
        message_for("cache_dir=/tmp/c device=reference"),
        ContainsSubstring("a comma is missing before \"device=reference\"; flags are separated by commas"));
    CHECK_THAT(message_for("compiler=g++ -v mode = fast_compile"), ContainsSubstring("before \"mode = fast"));
    CHECK(parse_options("compiler=g++ -std=c++20", nullptr, nullptr).compiler == "g++ -std=c++20");
    CHECK(parse_options("cache_dir=/tmp/device x", nullptr, nullptr).cache_directory == "/tmp/device x");
}

TEST_CASE("an unknown flag names the known ones") {
    const std::string message = message_for("devcie=cpu");
    CHECK_THAT(message, ContainsSubstring("unknown flag \"devcie\"; did you mean \"device\"?"));
    CHECK_THAT(message_for("zzzzzzzz=1"), ContainsSubstring("unknown flag \"zzzzzzzz\"; known are"));
    CHECK_THROWS_WITH(dtype_named("flaot32"), ContainsSubstring("did you mean \"float32\"?"));
    CHECK_THROWS_WITH(dtype_named("float"), ContainsSubstring("did you mean \"float32\"?"));
    CHECK_THROWS_WITH(dtype_named("double"), ContainsSubstring("did you mean \"float64\"?"));
    CHECK_THROWS_WITH(dtype_named("int"), ContainsSubstring("did you mean \"int32\"?"));
    CHECK_THROWS_WITH(dtype_named("bool"), ContainsSubstring("did you mean \"boolean\"?"));
    CHECK_THROWS_WITH(dtype_named("half"), ContainsSubstring("did you mean \"float16\"?"));
    CHECK_THAT(message, ContainsSubstring("device=cpu|cuda|emulator|reference|reference=wide|null"));
    CHECK_THAT(message, ContainsSubstring("disable=NAME"));
}

TEST_CASE("malformed values say what is expected") {
    CHECK_THAT(message_for("cache=maybe"), ContainsSubstring("cache=\"maybe\" is not on or off"));
    CHECK_THAT(message_for("autotune=yes"), ContainsSubstring("autotune=\"yes\" is not on or off"));
    CHECK_THAT(message_for("threads=many"), ContainsSubstring("threads=\"many\" is not a number"));
    CHECK_THAT(message_for("threads=-1"), ContainsSubstring("threads=\"-1\""));
    CHECK_THAT(message_for("promotion=numpy"), ContainsSubstring("strict or theano"));
    CHECK_THAT(message_for("math=fast"), ContainsSubstring("math=\"fast\" is not usual or strict"));
    CHECK_THAT(message_for("math=strict,assume_finite=on"), ContainsSubstring("leave one of them out"));
    CHECK_THAT(message_for("tasks=small"), ContainsSubstring("usual or smallest"));
    CHECK_THAT(message_for("mode=fast"), ContainsSubstring("fast_run or fast_compile"));
    CHECK_THAT(message_for("cpu_target=x86-64-v5"), ContainsSubstring("native, x86-64-v4, x86-64-v3"));
    CHECK_THAT(message_for("launches=on"),
               ContainsSubstring("launches=\"on\" is not ahead, wait or compare"));
    for (const char* target : {"90", "sm_", "sm_9x", "sm_90000", "compute_90"})
        CHECK_THAT(message_for((std::string("dump_target=") + target).c_str()),
                   ContainsSubstring("an architecture such as sm_90"));
    CHECK_THAT(message_for("device"), ContainsSubstring("device needs a value"));
    CHECK_THAT(message_for("device="), ContainsSubstring("the name of a device"));
    CHECK_THAT(message_for("", "9"),
               ContainsSubstring("BITALE_DEBUG: level=\"9\" is not a level from 0 to 6"));
    CHECK_THAT(message_for("", "loud"), ContainsSubstring("BITALE_DEBUG"));
}

TEST_CASE("names like a name that nobody has are those of few other letters, or that contain it") {
    const std::set<std::string> known = {"add-zero", "div-one",  "log-softmax", "log-softmax-shift",
                                         "mul-one",  "mul-zero", "softmax"};
    using Names = std::vector<std::string>;
    CHECK(names_like("log-sofmax", known) == Names{"log-softmax"});
    CHECK(names_like("softmax", known) == Names{"softmax", "log-softmax", "log-softmax-shift"});
    CHECK(names_like("mul-onw", known) == Names{"mul-one"});
    CHECK(names_like("", known).empty());
    CHECK(names_like("convolution", known).empty());
    CHECK(names_like(std::string(1000, 'x'), known).empty());
    CHECK(names_like("o", {"ab", "bc", "cd", "de", "ef", "fg", "gh"}).size() == 5);
}

TEST_CASE("scoped options nest") {
    const int before = options().debug;
    {
        Options outer = options();
        outer.debug = before + 1;
        const ScopedOptions scope(outer);
        CHECK(options().debug == before + 1);
        {
            Options inner = options();
            inner.device = "null";
            const ScopedOptions deeper(inner);
            CHECK(options().device == "null");
            CHECK(options().debug == before + 1);
        }
        CHECK(options().device != "null");
    }
    CHECK(options().debug == before);
}

TEST_CASE("the log obeys the level and can be redirected") {
    std::vector<std::string> lines;
    const ScopedLog redirect([&](const std::string& line) { lines.push_back(line); });
    Options level_two = options();
    level_two.debug = 2;
    const ScopedOptions scope(level_two);
    log(2, "shown");
    log(3, "hidden");
    warn("something odd");
    CHECK(lines == std::vector<std::string>{"shown", "warning: something odd"});
    CHECK(logs(2));
    CHECK_FALSE(logs(3));
}
