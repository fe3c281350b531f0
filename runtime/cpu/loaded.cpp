// Counting the uses of loaded objects; closing those that have been unused for longest.
#include "runtime/cpu/loaded.h"

#include <dlfcn.h>

#include <list>
#include <map>
#include <mutex>

#include "graph/base/turns.h"
#include "runtime/cpu/object_file.h"
#include "runtime/outside.h"

namespace bitale {

struct LoadedObjects::State : std::enable_shared_from_this<LoadedObjects::State> {
    struct Object {
        void* handle = nullptr;
        int users = 0;                            // handles given out and not yet dropped
        std::list<std::string>::iterator unused;  // where it stands in the list, without users
    };
    using Entry = std::map<std::string, Object>::iterator;

    ForkMutex mutex{ForkMutex::Rank::outer};
    std::size_t most_unused = 0;
    std::map<std::string, Object> objects;
    std::list<std::string> unused;  // the one that was dropped first is the first

    // One of the handles given out. All that its end needs is allocated before it counts.
    struct Holder {
        std::shared_ptr<State> state;
        std::list<std::string> key;  // becomes an entry of `unused`
        bool counts = false;
        Holder(std::shared_ptr<State> s, const std::string& k) : state(std::move(s)), key{k} {}
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;
        ~Holder() {
            if (counts) state->drop(key);
        }
    };

    // Objects that nobody knows any more; closing them runs foreign code, destructors, so their last owner
    // has no mutex.
    struct Closing {
        std::map<std::string, Object> objects;
        Closing() = default;
        Closing(const Closing&) = delete;
        Closing& operator=(const Closing&) = delete;
        ~Closing() {
            for (const auto& [key, object] : objects) dlclose(object.handle);
        }
    };

    // The caller holds the mutex, here and in close_all_but().
    Use use(Entry at) {
        Object& object = at->second;
        const auto holder = std::make_shared<Holder>(shared_from_this(), at->first);
        if (object.users++ == 0 && object.unused != unused.end()) {
            unused.erase(object.unused);
            object.unused = unused.end();
        }
        holder->counts = true;
        return {holder, object.handle};
    }

    void drop(std::list<std::string>& key) {
        Closing closing;
        const std::lock_guard lock(mutex);
        const Entry at = objects.find(key.front());
        if (--at->second.users > 0) return;
        unused.splice(unused.end(), key);
        at->second.unused = std::prev(unused.end());
        close_all_but(most_unused, closing);
    }

    // Of the objects without users, those that were used last stay open.
    void close_all_but(std::size_t most, Closing& closing) {
        while (unused.size() > most) {
            closing.objects.insert(objects.extract(unused.front()));
            unused.pop_front();
        }
    }
};

LoadedObjects::LoadedObjects(std::size_t most_unused) : state_(std::make_shared<State>()) {
    state_->most_unused = most_unused;
}

LoadedObjects::~LoadedObjects() {
    State::Closing closing;
    const std::lock_guard lock(state_->mutex);
    state_->most_unused = 0;
    state_->close_all_but(0, closing);
}

LoadedObjects::Use LoadedObjects::find(const std::string& key) {
    const std::lock_guard lock(state_->mutex);
    const State::Entry at = state_->objects.find(key);
    return at == state_->objects.end() ? nullptr : state_->use(at);
}

LoadedObjects::Use LoadedObjects::open(const std::string& key, const std::string& path, std::string& problem,
                                       const std::vector<std::string>& functions) {
    problem = problem_of_object(path);
    if (!problem.empty()) {
        problem.insert(0, path + " ");
        return nullptr;
    }
    void* handle = outside::load_library(path, RTLD_NOW | RTLD_LOCAL, &problem);
    if (!handle) return nullptr;
    // Closed where another thread was faster, or where memory does not suffice.
    struct Close {
        void operator()(void* h) const { dlclose(h); }
    };
    std::unique_ptr<void, Close> own(handle);
    for (const std::string& function : functions)
        if (!dlsym(handle, function.c_str())) {
            problem = path + " has no " + function;
            return nullptr;
        }
    const std::lock_guard lock(state_->mutex);
    const auto [at, fresh] = state_->objects.try_emplace(key);
    if (fresh) {
        at->second.handle = own.release();
        at->second.unused = state_->unused.end();
    }
    return state_->use(at);
}

std::size_t LoadedObjects::open_objects() const {
    const std::lock_guard lock(state_->mutex);
    return state_->objects.size();
}

}  // namespace bitale
