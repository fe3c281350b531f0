// Loaded objects, found by key: open while anybody uses them, and for a while after.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace bitale {

// Kernels of functions that are gone are likely to be wanted again, so the objects used last stay open; the
// others are closed, or a process that compiles new kernels for days would run out of mappings. For any
// number of threads.
class LoadedObjects {
  public:
    // The handle of dlopen. The object stays open as long as one of these lives.
    using Use = std::shared_ptr<void>;

    explicit LoadedObjects(std::size_t most_unused);
    ~LoadedObjects();  // closes what nobody uses
    LoadedObjects(const LoadedObjects&) = delete;
    LoadedObjects& operator=(const LoadedObjects&) = delete;

    Use find(const std::string& key);  // null when it is not open
    // Opens the file, unless an object of this key is open already; null, and why, when that fails, or where
    // the file is damaged or has not all of the functions.
    Use open(const std::string& key, const std::string& path, std::string& problem,
             const std::vector<std::string>& functions = {});
    std::size_t open_objects() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace bitale
