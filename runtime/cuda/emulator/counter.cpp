#include "runtime/cuda/emulator/counter.h"

#include <algorithm>
#include <utility>

namespace bitale::cuda {

namespace {

constexpr std::uintptr_t sector_bytes = 32, line_bytes = 128, bank_bytes = 4, banks = 32;
constexpr std::size_t instruction_bytes = 16;  // the most that one instruction moves for a thread

bool same_extent(const Extent& a, const Extent& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

// Few numbers, in any order, each once.
class FewNumbers {
  public:
    void add(std::uintptr_t number) {
        if (size_ > 0 && numbers_[size_ - 1] == number) return;
        if (std::find(numbers_.begin(), numbers_.begin() + size_, number) == numbers_.begin() + size_)
            numbers_[static_cast<std::size_t>(size_++)] = number;
    }
    int size() const { return static_cast<int>(size_); }
    std::uintptr_t operator[](int i) const { return numbers_[static_cast<std::size_t>(i)]; }

  private:
    std::array<std::uintptr_t, 128> numbers_{};  // room for 32 lanes of 16 bytes, none of them aligned
    std::ptrdiff_t size_ = 0;
};

// How often the busiest bank serves the lanes. Those of 8 bytes come by halves of a warp, of 16 by quarters.
int turns_of(const std::array<std::uintptr_t, 32>& request, std::size_t bytes) {
    const std::size_t words = std::max<std::size_t>(1, (bytes + bank_bytes - 1) / bank_bytes),
                      lanes = std::max<std::size_t>(1, request.size() / words);
    int most = 1;
    for (std::size_t first = 0; first < request.size(); first += lanes) {
        FewNumbers different;
        for (std::size_t lane = first; lane < std::min(first + lanes, request.size()); ++lane)
            for (std::size_t w = 0; request[lane] && w < words; ++w)
                different.add(request[lane] / bank_bytes + w);
        std::array<int, banks> of_bank{};
        for (int i = 0; i < different.size(); ++i) most = std::max(most, ++of_bank[different[i] % banks]);
    }
    return most;
}

}  // namespace

void Counter::begin_launch(const EmulatedKernel& kernel, const Extent& grid, const Extent& block) {
    kernel_ = &kernel;
    std::vector<CountedLaunches>& all = kernel.counts->launches;
    const auto found = std::find_if(all.begin(), all.end(), [&](const CountedLaunches& l) {
        return same_extent(l.grid, grid) && same_extent(l.block, block);
    });
    launches_ = found == all.end() ? &all.emplace_back() : &*found;
    launches_->grid = grid;
    launches_->block = block;
    LaunchCounts& c = launches_->counts;
    c.kernel = kernel.name;
    c.blocks = std::int64_t{grid.x} * grid.y * grid.z;
    c.threads = std::int64_t{block.x} * block.y * block.z;
    ++c.launches;
    const auto threads = static_cast<unsigned>(c.threads);
    threads_.assign(threads, {});
    warps_.clear();
    warps_.resize((threads + warp_size - 1) / warp_size);
    for (unsigned w = 0; w < warps_.size(); ++w)
        warps_[w].lanes = std::min(warp_size, threads - w * warp_size);
    free_logs_.clear();  // those of the last launch's places
    known_ = {};
    cache_ = {};
}

void Counter::begin_block() {
    for (Warp& w : warps_) w.stopped = 0;
    for (ThreadState& t : threads_) {
        t.works = false;
        t.waits = true;
        t.rounds = 0;
        std::fill(t.begun.begin(), t.begun.end(), 0);
    }
}

void Counter::end_block() {
    LaunchCounts& c = launches_->counts;
    const ThreadState* slowest = nullptr;
    std::int64_t chain = c.chain;
    for (const ThreadState& t : threads_) {
        c.working += t.works ? 1 : 0;
        if (t.rounds <= chain) continue;
        chain = t.rounds;
        slowest = &t;
    }
    if (!slowest) return;
    c.chain = chain;
    for (std::size_t p = 0; p < launches_->places.size(); ++p)
        launches_->places[p].counts.waits = p < slowest->begun.size() ? slowest->begun[p] : 0;
}

void Counter::stops(unsigned thread) {
    threads_[thread].waits = true;
    Warp& warp = warps_[thread / warp_size];
    if (++warp.stopped == warp.lanes) complete(warp);
}

void Counter::goes_on(unsigned thread) { --warps_[thread / warp_size].stopped; }

Counter::Region Counter::region_of(const char* address) {
    for (const Known& k : known_)
        if (static_cast<std::size_t>(address - k.begin) < k.bytes) return k.region;
    Known found;
    for (const SharedArray& a : kernel_->shared)
        if (static_cast<std::size_t>(address - a.data) < a.bytes) found = {a.data, a.bytes, Region::shared};
    if (found.region == Region::other)
        if (const MemoryBlock block = block_near(address); block.holds(address))
            found = {block.begin, block.bytes, Region::global};
    // Nothing else is memory of the GPU: tables of constants, the emulator's own.
    if (found.region != Region::other) known_[next_known_++ % known_.size()] = found;
    return found.region;
}

unsigned Counter::place_of(const void* code, Region region, bool store, std::size_t bytes) {
    // Code lies in the lower half of the addresses.
    const std::uintptr_t key =
        reinterpret_cast<std::uintptr_t>(code) * 4 + (region == Region::shared ? 2 : 0) + (store ? 1 : 0);
    CachedPlace& cached = cache_[key / 4 % cache_.size()];
    if (cached.key == key) return cached.number;
    std::vector<CountedPlace>& places = launches_->places;
    const auto [at, fresh] = launches_->numbers.emplace(key, static_cast<unsigned>(places.size()));
    if (fresh) {
        CountedPlace& place = places.emplace_back();
        place.code = code;
        place.bytes = bytes;
        place.counts.memory =
            region == Region::shared ? AccessCounts::Memory::shared : AccessCounts::Memory::global;
        place.counts.store = store;
    }
    cached = {key, at->second};
    return at->second;
}

void Counter::load(ThreadState& thread, unsigned place) {
    if (thread.seen.size() <= place) {
        thread.seen.resize(place + 1, 0);
        thread.begun.resize(place + 1, 0);
    }
    if (thread.waits || thread.seen[place] == thread.round) {
        thread.waits = false;
        ++thread.round;
        ++thread.rounds;
        ++thread.begun[place];
    }
    thread.seen[place] = thread.round;
}

void Counter::access(const void* where, std::size_t bytes, AccessKind kind, const void* code,
                     unsigned thread) {
    const auto* address = static_cast<const char*>(where);
    const Region region = region_of(address);
    if (region == Region::other) return;
    const bool store = kind != AccessKind::read;
    const unsigned place = place_of(code, region, store, bytes);
    ThreadState& state = threads_[thread];
    state.works = true;
    if (region == Region::global && !store) load(state, place);

    std::unique_ptr<WarpLog>& log = warps_[thread / warp_size].log;
    if (!log) {
        if (free_logs_.empty()) free_logs_.push_back(std::make_unique<WarpLog>());
        log = std::move(free_logs_.back());
        free_logs_.pop_back();
    }
    if (log->places.size() <= place) log->places.resize(place + 1);
    PlaceLog& own = log->places[place];
    const unsigned lane = thread % warp_size;
    const std::uint32_t turn = own.turns[lane]++;
    if (own.requests.empty()) log->touched.push_back(place);
    if (own.requests.size() <= turn) own.requests.push_back({});
    own.requests[turn][lane] = reinterpret_cast<std::uintptr_t>(address);
}

void Counter::complete(Warp& warp) {
    if (!warp.log) return;
    for (const unsigned place : warp.log->touched) {
        PlaceLog& log = warp.log->places[place];
        for (const Addresses& request : log.requests) count(launches_->places[place], request);
        log.requests.clear();
        log.turns.fill(0);
    }
    warp.log->touched.clear();
    free_logs_.push_back(std::move(warp.log));
}

void Counter::count(CountedPlace& place, const Addresses& request) {
    AccessCounts& c = place.counts;
    const auto lanes = static_cast<std::int64_t>(
        std::count_if(request.begin(), request.end(), [](std::uintptr_t a) { return a != 0; }));
    for (std::size_t first = 0; first < place.bytes; first += instruction_bytes) {
        const std::size_t bytes = std::min(instruction_bytes, place.bytes - first);
        Addresses part = request;
        for (std::uintptr_t& a : part) a += a ? first : 0;
        ++c.requests;
        c.threads += lanes;
        if (c.memory == AccessCounts::Memory::shared) {
            const int turns = turns_of(part, bytes);
            c.turns += turns;
            c.worst_turns = std::max<std::int64_t>(c.worst_turns, turns);
            continue;
        }
        FewNumbers sectors, lines;
        for (const std::uintptr_t a : part)
            for (std::uintptr_t end = a + bytes - 1, s = a / sector_bytes; a && s <= end / sector_bytes;
                 ++s) {
                sectors.add(s);
                lines.add(s * sector_bytes / line_bytes);
            }
        c.sectors += sectors.size();
        c.lines += lines.size();
        c.worst_sectors = std::max<std::int64_t>(c.worst_sectors, sectors.size());
        c.worst_lines = std::max<std::int64_t>(c.worst_lines, lines.size());
    }
}

}  // namespace bitale::cuda
