#include "runtime/cuda/emulator/checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace bitale::cuda {

namespace {

constexpr unsigned most_sites = (1u << 14) - 1, most_clock = 255;

const char* verb_of(AccessKind kind) {
    return kind == AccessKind::read ? "reads" : kind == AccessKind::write ? "writes" : "atomically changes";
}

}  // namespace

void Checker::begin_launch(const EmulatedKernel& kernel, unsigned threads, int device, void** arguments) {
    kernel_ = &kernel;
    device_ = device;
    arguments_ = arguments;
    problem_.clear();
    ++launch_;
    interval_ = 0;
    blocks_.clear();
    clocks_.assign(threads, {});
    regions_ = {};
    // Pages keep the number of their launch, and need no clearing; unless there are too many.
    if (pages_.size() > most_pages) {
        pages_.clear();
        cache_ = {};
    }
    atomics_.clear();
    sites_.clear();
    site_numbers_.clear();
}

void Checker::begin_block(unsigned number) {
    next_interval();
    block_begin_ = interval_;
    blocks_.push_back({interval_, number});
}

void Checker::next_interval() {
    ++interval_;
    if (!clocks_used_ && interval_ > 1) return;
    clocks_used_ = false;
    for (std::size_t t = 0; t < clocks_.size(); ++t) {
        clocks_[t].fill(0);
        clocks_[t][t % warp_size] = 1;
    }
}

void Checker::met(unsigned first, unsigned lanes) {
    clocks_used_ = true;
    std::array<std::uint8_t, warp_size> known{};
    const auto each = [&](auto&& act) {
        for (unsigned lane = 0; lane < warp_size; ++lane)
            if (lanes >> lane & 1) act(clocks_[first + lane], lane);
    };
    each([&](const auto& clock, unsigned) {
        for (unsigned lane = 0; lane < warp_size; ++lane) known[lane] = std::max(known[lane], clock[lane]);
    });
    each([&](auto& clock, unsigned lane) {
        clock = known;
        if (clock[lane] < most_clock) ++clock[lane];
    });
}

bool Checker::ordered(const Access& before, const Access& now) const {
    return before.thread == now.thread || (before.thread / warp_size == now.thread / warp_size &&
                                           clocks_[now.thread][before.thread % warp_size] >= before.clock);
}

bool Checker::conflicts(const Access& before, const Now& now) const {
    if (before.interval == 0) return false;
    if (before.interval < block_begin_) return !now.region.shared;  // of another block
    return before.interval == interval_ && !ordered(before, now.access);
}

unsigned Checker::site_of(const void* code) {
    if (const auto at = site_numbers_.find(code); at != site_numbers_.end()) return at->second;
    if (sites_.size() < most_sites) sites_.push_back(code);
    return site_numbers_[code] = static_cast<unsigned>(sites_.size() - 1);
}

const Checker::Region* Checker::region_of(const char* address) {
    for (const Region& r : regions_)
        if (r.block.holds(address)) return &r;
    Region found;
    for (const SharedArray& a : kernel_->shared) {
        found.block = {a.data, a.bytes, a.bytes};
        found.shared = &a;
        if (found.block.holds(address)) break;
        found = {};
    }
    if (!found.shared) found.block = block_near(address);
    if (!found.block.holds(address)) return nullptr;
    return &(regions_[next_region_++ % regions_.size()] = found);
}

bool Checker::access(const void* where, std::size_t bytes, AccessKind kind, const void* code,
                     unsigned thread) {
    const char* address = static_cast<const char*>(where);
    const Region* region = region_of(address);
    const auto offset = region ? static_cast<std::size_t>(address - region->block.begin) : 0;
    if (!region || offset + bytes > (kind == AccessKind::read ? region->block.bytes : region->block.writable))
        return out_of_bounds(address, bytes, kind, code, thread);
    if (region->block.device != no_device && region->block.device != device_)
        return foreign(*region, address, bytes, kind, code, thread);
    // The pieces of an access are at most 16 bytes; larger ones have no alignment of their own.
    if (const auto value = reinterpret_cast<std::uintptr_t>(address);
        bytes <= 16 && (bytes & (bytes - 1)) == 0 && value % bytes != 0) {
        problem_ = fmt::format("thread {} {} {}, which is not aligned ({})", thread, verb_of(kind),
                               place(*region, address, bytes), kernel_->module->cite(code));
        return false;
    }
    Now now{address, bytes, kind, {}, *region};
    now.access.interval = interval_;
    now.access.thread = thread;
    now.access.clock = clocks_[thread][thread % warp_size];
    now.access.site = site_of(code);
    for (const char *at = address, *end = address + bytes; at < end;) {
        const auto value = reinterpret_cast<std::uintptr_t>(at);
        Page& page = page_at(value / page_bytes);
        const std::size_t first = value % page_bytes,
                          last =
                              std::min<std::size_t>(first + static_cast<std::size_t>(end - at), page_bytes);
        if (!page.bytewise && (first % 4 != 0 || last % 4 != 0)) {
            page.bytewise = true;
            std::vector<Cell> cells(page_bytes);
            for (std::size_t i = 0; i < page_bytes; ++i) cells[i] = page.cells[i / 4];
            page.cells = std::move(cells);
        }
        const std::size_t step = page.bytewise ? 1 : 4;
        for (std::size_t b = first; b < last; b += step, at += step)
            if (!visit(now, page.cells[b / step], page, at)) return false;
    }
    if (!region->block.written) return true;
    if (kind != AccessKind::write && region->block.written->gap(offset, bytes)) return unwritten(now, offset);
    if (kind != AccessKind::read) region->block.written->mark(offset, bytes);
    return true;
}

// The kernel's text calls its buffers by their places among the arguments.
bool Checker::unwritten(const Now& now, std::size_t offset) {
    const MemoryBlock& block = now.region.block;
    std::string buffer;
    kernel_->for_each_pointer(arguments_, [&](const char* pointer, std::size_t place) {
        if (pointer == block.begin && buffer.empty()) buffer = fmt::format(" (argument {})", place);
    });
    const std::size_t gap = *block.written->gap(offset, now.bytes);
    problem_ = fmt::format("thread {} reads {}{}, of which nobody has written byte {}{} ({})",
                           now.access.thread, place(now.region, now.address, now.bytes), buffer, gap,
                           gap >= block.writable ? ", behind the end" : "", cite(now.access));
    return false;
}

Checker::Page& Checker::page_at(std::uintptr_t number) {
    CachedPage& cached = cache_[number % cached_pages];
    if (cached.number != number || !cached.page) {
        std::unique_ptr<Page>& page = pages_[number];
        if (!page) page = std::make_unique<Page>();
        cached = {number, page.get()};
    }
    Page& page = *cached.page;
    if (page.launch != launch_) {
        page.launch = launch_;
        page.bytewise = page.atomics = false;
        page.cells.assign(page_bytes / 4, {});
    }
    return page;
}

// Keeps two readers of the interval that no later writer is ordered behind at once: of two warps, if there
// are two.
void Checker::note_reader(const Access& access, std::array<Access, 2>& readers) const {
    if (readers[0].interval != interval_) {
        readers = {access, {}};
        return;
    }
    if (ordered(readers[0], access)) {
        readers[0] = access;
        return;
    }
    if (readers[1].interval != interval_ || ordered(readers[1], access) ||
        (readers[0].thread / warp_size == readers[1].thread / warp_size &&
         readers[0].thread / warp_size != access.thread / warp_size))
        readers[1] = access;
}

bool Checker::visit(const Now& now, Cell& cell, Page& page, const char* at) {
    if (now.kind == AccessKind::read) {
        if (cell.readers[0].interval == interval_ && cell.readers[0].thread == now.access.thread &&
            cell.write.interval != interval_ && !page.atomics)
            return true;
        if (now.region.shared && cell.write.interval < block_begin_) {
            const auto atomic = atomics_.find(reinterpret_cast<std::uintptr_t>(at) / 4);
            if (atomic == atomics_.end() || atomic->second.last[0].interval < block_begin_) {
                problem_ = fmt::format("thread {} reads {}, which no thread of the block has written ({})",
                                       now.access.thread, place(now.region, now.address, now.bytes),
                                       cite(now.access));
                return false;
            }
        }
    }
    if (conflicts(cell.write, now)) return race(now, cell.write, "written");
    if (now.kind != AccessKind::read) {
        if (conflicts(cell.first_reader, now)) return race(now, cell.first_reader, "read");
        for (const Access& r : cell.readers)
            if (r.interval == interval_ && conflicts(r, now)) return race(now, r, "read");
    }
    if (now.kind == AccessKind::atomic) {
        page.atomics = true;
        Atomics& a = atomics_[reinterpret_cast<std::uintptr_t>(at) / 4];
        if (a.first.interval == 0) a.first = now.access;
        note_reader(now.access, a.last);
        return true;
    }
    if (page.atomics && !visit_atomics(now, at)) return false;
    if (now.kind == AccessKind::write) {
        cell.write = now.access;
    } else {
        if (cell.first_reader.interval == 0) cell.first_reader = now.access;
        note_reader(now.access, cell.readers);
    }
    return true;
}

bool Checker::visit_atomics(const Now& now, const char* at) {
    const auto found = atomics_.find(reinterpret_cast<std::uintptr_t>(at) / 4);
    if (found == atomics_.end()) return true;
    const Atomics& a = found->second;
    for (const Access& before : {a.first, a.last[0], a.last[1]})
        if (conflicts(before, now)) return race(now, before, "atomically changed");
    return true;
}

std::string Checker::cite(const Access& access) const { return kernel_->module->cite(sites_[access.site]); }

std::string Checker::place(const Region& region, const char* address, std::size_t bytes) const {
    const auto offset = static_cast<std::size_t>(address - region.block.begin);
    if (region.shared)
        return fmt::format("{} bytes at byte {} of the shared {} ({} bytes)", bytes, offset,
                           region.shared->name, region.shared->bytes);
    return fmt::format("{} bytes at byte {} of a block of {} bytes", bytes, offset, region.block.writable);
}

bool Checker::race(const Now& now, const Access& before, const char* verb) {
    const auto block =
        std::upper_bound(blocks_.begin(), blocks_.end(), before.interval,
                         [](std::uint32_t interval, const BlockStart& b) { return interval < b.interval; }) -
        1;
    const bool same_block = before.interval >= block_begin_;
    problem_ = fmt::format("thread {} {} {} ({}); thread {}{} has {} it ({}), and {}", now.access.thread,
                           verb_of(now.kind), place(now.region, now.address, now.bytes), cite(now.access),
                           before.thread + 0u, same_block ? "" : fmt::format(" of block {}", block->number),
                           verb, cite(before),
                           same_block ? "no barrier is between them" : "blocks of a launch have no order");
    return false;
}

bool Checker::foreign(const Region& region, const char* address, std::size_t bytes, AccessKind kind,
                      const void* code, unsigned thread) {
    problem_ = fmt::format("thread {} {} {}, in the memory of device {}, and runs on device {} ({})", thread,
                           verb_of(kind), place(region, address, bytes), region.block.device, device_,
                           kernel_->module->cite(code));
    return false;
}

bool Checker::out_of_bounds(const char* address, std::size_t bytes, AccessKind kind, const void* code,
                            unsigned thread) {
    if (kind == AccessKind::read && kernel_->module->is_constant(address)) return true;
    const auto distance = [&](const MemoryBlock& b) {
        return address < b.begin ? b.begin - address
                                 : address - b.begin - static_cast<std::ptrdiff_t>(b.bytes);
    };
    MemoryBlock nearest = block_near(address);
    std::string name = "a block";
    for (const SharedArray& a : kernel_->shared) {
        const MemoryBlock b{a.data, a.bytes, a.bytes};
        if (nearest.begin && distance(nearest) <= distance(b)) continue;
        nearest = b;
        name = "the shared " + a.name;
    }
    std::string text = "outside of all memory";
    if (nearest.begin && address < nearest.begin)
        text = fmt::format("{} bytes before the begin of {} of {} bytes", nearest.begin - address, name,
                           nearest.writable);
    else if (nearest.begin)
        text = fmt::format("at byte {} of {} of {} bytes", address - nearest.begin, name, nearest.writable);
    problem_ = fmt::format("thread {} {} {} bytes {} ({})", thread, verb_of(kind), bytes, text,
                           kernel_->module->cite(code));
    return false;
}

}  // namespace bitale::cuda
