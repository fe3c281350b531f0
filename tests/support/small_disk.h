// A file system that is soon full.
#pragma once

#include <sys/mount.h>

#include <string>

#include "tests/support/temporary.h"

namespace bitale::test {

// A file system of so many bytes, where the tests may mount one.
class SmallDisk {
  public:
    explicit SmallDisk(int kilobytes, unsigned long flags = 0) {
        const std::string size = "size=" + std::to_string(kilobytes) + "k";
        mounted_ = mount("tmpfs", folder_.path().c_str(), "tmpfs", flags, size.c_str()) == 0;
    }
    ~SmallDisk() {
        if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    bool mounted() const { return mounted_; }
    std::string operator/(const std::string& name) const { return folder_ / name; }
    const std::string& path() const { return folder_.path(); }

  private:
    TemporaryFolder folder_;
    bool mounted_ = false;
};

}  // namespace bitale::test
