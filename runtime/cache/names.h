// The names in a folder. std::filesystem's iterator ends the process where it finds no memory.
#pragma once

#include <dirent.h>

#include <memory>
#include <string>
#include <string_view>

namespace bitale {

// f(name) for each file and folder in it; for none where it cannot be read.
template <class F>
void each_name(const std::string& folder, F&& f) {
    const std::unique_ptr<DIR, int (*)(DIR*)> list(opendir(folder.c_str()), closedir);
    while (const dirent* entry = list ? readdir(list.get()) : nullptr)
        if (const std::string_view name = entry->d_name; name != "." && name != "..") f(std::string(name));
}

}  // namespace bitale
