// A program with more rights than whoever started it takes nothing from the environment.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr const char* child_variable = "RIGHTS_TEST_CHILD";

// The exit status of this program's case "child of another user", started by nobody.
int as_nobody(const std::string& program, const std::string& path) {
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0 || chdir("/") != 0) _exit(100);
        setenv(child_variable, "1", 1);
        setenv("BITALE_FLAGS", "compiler_seconds=7,cache_dir=/strange", 1);
        setenv("BITALE_CXX", "/strange/compiler", 1);
        setenv("BITALE_DEBUG", "", 1);
        setenv("PATH", path.c_str(), 1);
        execl(program.c_str(), program.c_str(), "child of another user", nullptr);
        _exit(101);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
}

bool can_start(const char* program) {
    try {
        return run_program({program}, 10).succeeded();
    } catch (const CompileError&) {
        return false;
    }
}

}  // namespace

TEST_CASE("child of another user", "[core][runtime]") {
    if (!std::getenv(child_variable)) return;
    const bool own_rights = getuid() == geteuid();
    CHECK((options().compiler_seconds == 7) == own_rights);
    CHECK((cache_directory() == "/strange") == own_rights);
    CHECK(find_compiler().found.has_value() == !own_rights);
    CHECK(can_start("strange") == own_rights);
    CHECK(can_start("true"));
}

TEST_CASE("a set-user-id program takes no options and no programs from the environment", "[core][runtime]") {
    const TemporaryFolder folder;
    struct statvfs where {};
    if (geteuid() != 0 || !std::string(BITALE_SANITIZE).empty() ||
        statvfs(folder.path().c_str(), &where) != 0 || (where.f_flag & ST_NOSUID) != 0) {
        WARN("skipped: needs root, and a folder for set-user-id programs");
        return;
    }
    const std::string program = folder / "program";
    std::filesystem::copy_file("/proc/self/exe", program);
    REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
    REQUIRE(chmod(program.c_str(), 0755) == 0);
    std::filesystem::copy_file("/bin/true", folder / "strange");
    const std::string path = folder.path() + ":/usr/bin:/bin";
    CHECK(as_nobody(program, path) == 0);
    REQUIRE(chmod(program.c_str(), 04755) == 0);
    CHECK(as_nobody(program, path) == 0);
}
