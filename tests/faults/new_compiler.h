// Kernels that neither memory nor cache has: a compiler of another name each time, which compiles each text
// once and gives its object again.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cache/workshop.h"
#include "tests/support/temporary.h"

namespace bitale::test {

class NewCompiler {
  public:
    NewCompiler() {
        write_file(
            folder_ / "compiler",
            "#!/bin/sh\nshift; all=$*\nwhile [ \"$1\" != -o ]; do shift; done\n"
            "kept=" +
                folder_.path() +
                "/$(cksum < \"$3\" | tr ' ' -).so\n"
                "[ -f $kept ] || g++ $all || exit 1; [ -f $kept ] || cp \"$2\" $kept; cp $kept \"$2\"\n");
        chmod((folder_ / "compiler").c_str(), 0700);
    }
    void next() {
        scoped_.reset();
        Options o = options();
        o.cache_directory = folder_ / "cache";
        o.compiler = folder_ / "compiler " + std::to_string(++number_);
        scoped_.emplace(o);
        std::filesystem::remove_all(folder_ / "cache");
        std::filesystem::create_directory(folder_ / "cache");
        chmod((folder_ / "cache").c_str(), 0700);
    }
    // What could not be removed is removed by whoever builds next.
    std::string left() const {
        std::string problem;
        for (const std::string& base : {folder_ / "cache", temporary_.path()})
            if (sweep_workshops(base) != 0) problem += "a workshop is left";
        return problem;
    }

  private:
    TemporaryFolder folder_, temporary_;
    ScopedVariable variable_{"TMPDIR", temporary_.path()};
    ScopedLog quiet_{[](const std::string&) {}};
    std::optional<ScopedOptions> scoped_;
    int number_ = 0;
};

}  // namespace bitale::test
