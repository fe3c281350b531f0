#include "codegen/schedule/interleaved.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/channels.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "ops/elementwise/promotion.h"

namespace bitale {

namespace {

constexpr std::int64_t longest_register = 64;  // bytes

bool in_lanes(const Member& member, const ShapeOf& shape_of) {
    return member.tree.lanes > 1 && has_interleaved_channels(member.nest, shape_of);
}

class Interleaved {
  public:
    Interleaved(const Member& member, KernelBuilder& builder)
        : member_(member),
          nest_(member.nest),
          builder_(builder),
          channel_(nest_.parallel[static_cast<std::size_t>(channel_loop(nest_))]),
          outer_(nest_.parallel.begin(), nest_.parallel.begin() + channel_loop(nest_)),
          parts_(std::int64_t{member.tree.lanes} * member.tree.groups),
          width_(parts_ * channel_.extent.constant()),
          lane_(Int::symbol("lane", {0, width_ - 1})),
          dtype_(accumulator_of(nest_)) {
        repeat_channels();
    }

    Stmts run() {
        sums_ = builder_.scratch(Place::Scope::private_, dtype_, {Int(width_)});
        Stmts body{declare(sums_)};
        append(body, clear());
        append(body, before_);
        append(body, combine(0));
        append(body, finish());
        body.push_back(over_channels(stores(member_, result())));
        return around(outer_, std::move(body));
    }

    SplitReduce split(int partial_place, const std::vector<Int>& to) {
        Shape extents;
        for (const Loop& l : outer_) {
            extents.push_back(l.extent);
            at_.push_back(l.variable);
        }
        extents.emplace_back(width_);
        sums_ = builder_.scratch(Place::Scope::local, dtype_, extents);
        SplitReduce r;
        r.before = {declare(sums_)};
        append(r.before, around(outer_, clear()));
        append(r.before, before_);
        append(r.inside, around(outer_, combine(1)));
        Stmts after = finish();
        after.push_back(over_channels({set(partial_place, to, result())}));
        r.after = around(outer_, std::move(after));
        return r;
    }

    // What is the same for all terms may be copied before the first one.
    bool can_be_split() const { return in_chunk_; }

  private:
    // A value of each term of a block, and the place where it is repeated for each channel.
    struct Spread {
        int terms = -1, copy = -1;
        Scalar value;
    };

    static Stmts around(const std::vector<Loop>& loops, Stmts body) {
        for (auto l = loops.rbegin(); l != loops.rend(); ++l)
            if (l->variable.symbol_id())
                body = {loop(l->variable, 0, l->extent, Binding::serial, std::move(body))};
        return body;
    }

    Stmt over_channels(Stmts body) const {
        return loop(channel_.variable, 0, channel_.extent, Binding::simd, std::move(body));
    }

    bool varies_with(const Scalar& s, const Loop& l) const {
        return l.variable.symbol_id() && depends_on(s, l.variable.symbol_id());
    }

    bool varies_outside(const Scalar& s) const {
        return std::any_of(nest_.reduced.begin(), nest_.reduced.end() - 1,
                           [&](const Loop& l) { return varies_with(s, l); });
    }

    // What is the same for all terms is computed once, for each lane; what is the same for those of the last
    // loop, before each run of that.
    void repeat_channels() {
        const Int term = Int::symbol("term", {0, parts_ - 1});
        std::map<const ScalarNode*, Scalar> done;
        const std::function<Scalar(const Scalar&)> repeated = [&](const Scalar& s) -> Scalar {
            if (!s) return s;
            Scalar& r = done[s.get()];
            if (r) return r;
            if (depends_on(s, channel_.variable.symbol_id()) && !varies_with(s, nest_.reduced.back())) {
                const int copy = builder_.scratch(Place::Scope::local, s->dtype, {Int(width_)});
                const Int lane = term * channel_.extent + channel_.variable;
                before_.push_back(declare(copy));
                (varies_outside(s) ? before_run_ : before_)
                    .push_back(
                        loop(term, 0, parts_, Binding::serial, {over_channels({set(copy, {lane}, s)})}));
                for (const Loop& l : outer_) in_chunk_ = in_chunk_ && !varies_with(s, l);
                return r = place_read(s->dtype, copy, {lane_});
            }
            const bool is_product = adds_products(nest_) && s == nest_.body;  // stays one, of two factors
            // What is made of half precision has vectors.
            if (!is_product && !is_half(s->dtype) && varies_with(s, nest_.reduced.back()) &&
                !depends_on(s, channel_.variable.symbol_id()))
                return r = s->dtype == DType::boolean
                               ? scalar_cast(s->dtype, spread(scalar_cast(DType::uint8, s)))
                               : spread(s);
            if (s->arguments.empty()) return r = s;
            auto parts = std::make_shared<ScalarNode>(*s);
            for (Scalar& argument : parts->arguments) argument = repeated(argument);
            return r = parts;
        };
        body_ = repeated(nest_.body);
    }

    // What is the same for all channels of a term is repeated for each of them, block by block: vectors are
    // loaded from there.
    Scalar spread(const Scalar& s) {
        const std::int64_t in_register = longest_register / static_cast<std::int64_t>(bytes_of(s->dtype)),
                           room = (parts_ + in_register - 1) / in_register * in_register;
        const int terms = builder_.scratch(Place::Scope::local, s->dtype, {Int(room)}),
                  copy = builder_.scratch(Place::Scope::local, s->dtype,
                                          {Int(room * channel_.extent.constant())});
        before_.push_back(declare(terms));
        before_.push_back(declare(copy));
        spread_.push_back({terms, copy, s});
        return place_read(s->dtype, copy, {lane_});
    }

    // Of so many terms from that one on.
    Stmts spread_terms(const Int& first, const Int& count) const {
        Stmts body;
        for (const auto& [terms, copy, value] : spread_) {
            const Int term = Int::symbol("term", {0, parts_ - 1});
            const Scalar here =
                substitute(value, {{nest_.reduced.back().variable.symbol_id(), first + term}});
            body.push_back(loop(term, 0, count, Binding::simd, {set(terms, {term}, here)}));
            body.push_back(repeat(copy, {Int(0)}, place_read(value->dtype, terms, {Int(0)}),
                                  channel_.extent.constant(), count));
        }
        return body;
    }

    std::vector<Int> at(const Int& lane) const {
        std::vector<Int> r = at_;
        r.push_back(lane);
        return r;
    }

    Scalar result() const { return place_read(dtype_, sums_, at(channel_.variable)); }

    Stmts clear() const {
        return {
            loop(lane_, 0, width_, Binding::simd, {set(sums_, at(lane_), neutral(nest_.combine, dtype_))})};
    }

    // The terms of all reduced loops from that number on.
    Stmts combine(std::ptrdiff_t first_loop) const {
        const Loop& last = nest_.reduced.back();
        const Int &channels = channel_.extent, whole = floordiv(last.extent, parts_) * parts_,
                  rest = last.extent - whole;
        const Int block = Int::symbol("block", {0, last.extent.range().high});
        const bool fused = adds_products(nest_);
        const auto terms = [&](const Int& first, const Int& count) {
            const Substitution here{{last.variable.symbol_id(), first + floordiv(lane_, channels)},
                                    {channel_.variable.symbol_id(), mod(lane_, channels)}};
            const Scalar value = substitute(fused ? body_ : scalar_cast(dtype_, body_), here);
            Stmts all = spread_terms(first, count);
            all.push_back(loop(lane_, 0, count * channels, Binding::simd,
                               {accumulate(sums_, at(lane_), nest_.combine, value, fused)}));
            return all;
        };
        Stmts body = before_run_;
        if (whole.is(parts_))
            append(body, terms(0, parts_));
        else if (!whole.is(0))
            body.push_back(loop(block, 0, whole, Binding::serial, terms(block, parts_), parts_));
        if (!rest.is(0)) append(body, terms(whole, rest));
        return around({nest_.reduced.begin() + first_loop, nest_.reduced.end() - 1}, std::move(body));
    }

    Stmts finish() const {
        const std::int64_t channels = channel_.extent.constant();
        Stmts body;
        for (std::int64_t half = parts_ / 2; half >= 1; half /= 2) {
            const Int lane = Int::symbol("lane", {0, half * channels - 1});
            body.push_back(loop(lane, 0, half * channels, Binding::simd,
                                {accumulate(sums_, at(lane), nest_.combine,
                                            place_read(dtype_, sums_, at(lane + half * channels)))}));
        }
        return body;
    }

    const Member& member_;
    const Nest& nest_;
    KernelBuilder& builder_;
    const Loop channel_;
    const std::vector<Loop> outer_;
    const std::int64_t parts_, width_;  // partial results of a channel, and of all
    const Int lane_;
    const DType dtype_;
    Scalar body_;
    Stmts before_;                // copies of what is the same for all terms
    Stmts before_run_;            // of what is the same for those of the last loop
    std::vector<Spread> spread_;  // what is the same for all channels
    bool in_chunk_ = true;        // and for all results outside of the channels
    std::vector<Int> at_{};       // of the partial results: the loops outside
    int sums_ = -1;
};

}  // namespace

std::optional<Stmts> schedule_interleaved(const Member& member, KernelBuilder& builder) {
    if (!in_lanes(member, builder.shapes())) return {};
    return Interleaved(member, builder).run();
}

std::optional<SplitReduce> split_interleaved(const Member& member, KernelBuilder& builder, int partial_place,
                                             const std::vector<Int>& to) {
    if (!in_lanes(member, builder.shapes())) return {};
    Interleaved channels(member, builder);
    if (!channels.can_be_split()) return {};
    return channels.split(partial_place, to);
}

}  // namespace bitale
