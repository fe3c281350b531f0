// A MemoryPlan as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "graph/base/text.h"
#include "runtime/memory/limit.h"

namespace bitale {

namespace {

using Kind = MemoryPlan::Kind;

// One color each, in the order of Kind; dark enough for white text, and different in gray too.
constexpr std::array<const char*, 12> colors = {"#4e79a7", "#3b5b7e", "#8c8c8c", "#b07aa1",
                                                "#c7522a", "#59a14f", "#b8860b", "#2f7f79",
                                                "#7d5a4f", "#6b6bb5", "#808080", "#a0a0a0"};
const char* color_of(Kind kind) { return colors[static_cast<std::size_t>(kind)]; }

// Text between tags and in attributes.
std::string escaped(const std::string& text) {
    std::string s;
    for (const char c : printable(text)) switch (c) {
            case '<': s += "&lt;"; break;
            case '>': s += "&gt;"; break;
            case '&': s += "&amp;"; break;
            case '"': s += "&quot;"; break;
            default: s += c;
        }
    return s;
}

// As much of a text as a width holds, at 0.6 of its size a character; nothing where that is too little.
std::string fitting(const std::string& text, double width, double size) {
    const auto room = static_cast<std::size_t>(std::max(0.0, width / (0.6 * size)));
    // In characters of UTF-8.
    std::size_t characters = 0, at = 0, cut = 0;
    for (; at < text.size(); ++at) {
        if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
        if (++characters > room) break;
        if (characters + 2 <= room) cut = at;
    }
    if (at == text.size() || characters <= room) return text;
    return room < 5 ? "" : text.substr(0, cut) + "..";
}

std::string statement_of(const MemoryPlan::Buffer& b) {
    return b.where.empty() ? (b.name.empty() ? name_of(b.kind) : b.name) : b.where;
}

class Picture {
  public:
    explicit Picture(const MemoryPlan& plan) : plan_(plan) {}

    std::string run() {
        steps_ = std::max<std::size_t>(plan_.steps.size(), 1);
        step_width_ = std::clamp(960.0 / static_cast<double>(steps_), 2.0, 120.0);
        width_ = std::max(960.0, step_width_ * static_cast<double>(steps_));
        title();
        if (plan_.arena_bytes > 0) arena();
        own_blocks();
        legend();
        const double total = left + width_ + 20;
        return fmt::format(
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                   "width=\"{0:.0f}\" "
                   "height=\"{1:.0f}\" font-family=\"sans-serif\" role=\"img\">\n<rect width=\"100%\" "
                   "height=\"100%\" fill=\"#ffffff\"/>\n",
                   total, y_ + 10) +
               body_ + "</svg>\n";
    }

  private:
    static constexpr double left = 90, arena_height = 420;

    void text(double x, double y, double size, const std::string& words, const char* more = "") {
        body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" {}>{}</text>\n", x, y,
                             size, more, escaped(words));
    }
    void line(double x1, double y1, double x2, double y2, const char* style) {
        body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                             x2, y2, style);
    }

    void title() {
        text(20, 28, 18,
             fmt::format("Memory of a call of {} on {}: {}", plan_.function, plan_.device,
                         bytes_text(plan_.peak_bytes)),
             "font-weight=\"bold\"");
        std::string lengths;
        for (const auto& [name, length] : plan_.lengths)
            lengths += fmt::format("{}{} = {}", lengths.empty() ? "for " : ", ", name, length);
        text(20, 48, 13, lengths.empty() ? "All lengths are known." : lengths, "fill=\"#444\"");
        y_ = 64;
    }

    void used(Kind kind) { used_[static_cast<std::size_t>(kind)] = true; }

    // `inner`: an element that holds the rectangle and its label; a title element says the rest when a mouse
    // rests upon it.
    void rectangle(const MemoryPlan::Buffer& b, double x, double y, double width, double height,
                   const std::string& label) {
        used(b.kind);
        std::string all = description_of(b) + "\n" + name_of(b.kind);
        if (!b.reason.empty()) all += ": " + b.reason;
        if (b.offset >= 0)
            all += fmt::format("\nsteps {} to {}, offset {}, takes {}", b.first + 1, b.last + 1, b.offset,
                               bytes_text(b.reserved));
        std::string title;
        for (std::size_t at = 0;
             at <= all.size();) {  // line by line: a line end is no control character here
            const std::size_t end = std::min(all.find('\n', at), all.size());
            title += (title.empty() ? "" : "&#10;") + escaped(all.substr(at, end - at));
            at = end + 1;
        }
        body_ += fmt::format(
            "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
            "fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.7\"/>",
            title, x, y, width, height, color_of(b.kind));
        constexpr double size = 11;
        if (height >= size + 2)
            if (const std::string words = fitting(label, width - 8, size); !words.empty())
                body_ += fmt::format(
                    "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" fill=\"#ffffff\">{}</text>", x + 4,
                    y + std::min(height / 2 + 4, 20.0), size, escaped(words));
        body_ += "</g>\n";
    }

    void arena() {
        const double top = y_ + 26, bottom = top + arena_height;
        const auto bytes = static_cast<double>(plan_.arena_bytes);
        const auto y_at = [&](std::int64_t offset) {
            return bottom - arena_height * static_cast<double>(offset) / bytes;
        };
        text(20, y_ + 12, 14,
             fmt::format("What lives between the steps shares {}: time runs to the right, addresses "
                         "upwards",
                         bytes_text(plan_.arena_bytes)));
        body_ += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#f2f2f2\"/>\n", left,
            top, width_, arena_height);
        for (int tick = 0; tick <= 4; ++tick) {
            const auto offset = static_cast<std::int64_t>(bytes * tick / 4);
            line(left - 5, y_at(offset), left, y_at(offset), "stroke=\"#444\"");
            text(left - 8, y_at(offset) + 4, 11, bytes_text(offset), "text-anchor=\"end\"");
        }
        // Lifetimes end with their last step.
        for (const MemoryPlan::Buffer& b : plan_.buffers) {
            if (b.offset < 0) continue;
            rectangle(b, left + step_width_ * b.first, y_at(b.offset + b.reserved),
                      step_width_ * (b.last - b.first + 1), y_at(b.offset) - y_at(b.offset + b.reserved),
                      fmt::format("{} {}", bytes_text(b.bytes), statement_of(b)));
        }
        if (plan_.peak_step >= 0) {
            const double x = left + step_width_ * plan_.peak_step;
            body_ += fmt::format(
                "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
                "stroke=\"#000\" stroke-dasharray=\"4 3\"><title>the fullest step</title></rect>\n",
                x, top - 4, step_width_, arena_height + 8);
            const bool at_end = x > left + width_ / 2;
            text(at_end ? x + step_width_ : x, top - 8, 11,
                 fmt::format("fullest: {} at step {}", bytes_text(plan_.least_arena_bytes),
                             plan_.peak_step + 1),
                 at_end ? "text-anchor=\"end\"" : "");
        }
        y_ = bottom;
        steps();
    }

    // Their numbers below the picture, and below these what they compute.
    void steps() {
        const std::size_t every =
            std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(26 / step_width_)));
        for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
            const double x = left + step_width_ * static_cast<double>(s);
            line(x, y_, x, y_ + 5, "stroke=\"#444\"");
            if (s % every == 0)
                text(x + step_width_ / 2, y_ + 17, 11, fmt::format("{}", s + 1), "text-anchor=\"middle\"");
        }
        y_ += 34;
        constexpr std::size_t most_listed = 40;
        for (std::size_t s = 0; s < std::min(plan_.steps.size(), most_listed); ++s, y_ += 14)
            text(left, y_, 11,
                 fitting(fmt::format("{}. {}{}", s + 1, plan_.steps[s].what,
                                     plan_.steps[s].once ? " (once, not in every call)" : ""),
                         width_, 10),
                 "fill=\"#333\"");
        if (plan_.steps.size() > most_listed) {
            text(left, y_, 11, fmt::format("and {} steps more", plan_.steps.size() - most_listed),
                 "fill=\"#333\"");
            y_ += 14;
        }
        y_ += 12;
    }

    // Bars as long as they are large, of a scale of their own.
    void own_blocks() {
        constexpr std::size_t most_bars = 16;
        std::vector<const MemoryPlan::Buffer*> bars;
        std::int64_t rest = 0;
        std::size_t left_out = 0;
        for (const MemoryPlan::Buffer& b : plan_.buffers) {
            if (b.offset >= 0 || b.kind == Kind::control) continue;
            if (bars.size() < most_bars)
                bars.push_back(&b);
            else
                rest += b.bytes, ++left_out;
        }
        if (bars.empty()) return;
        text(20, y_ + 12, 14, "What has memory of its own, during the whole call");
        y_ += 24;
        const auto largest = static_cast<double>(std::max<std::int64_t>(bars[0]->reserved, 1));
        for (const MemoryPlan::Buffer* b : bars) {
            const double length = std::max(2.0, width_ / 2 * static_cast<double>(b->reserved) / largest);
            text(left - 8, y_ + 12, 11, bytes_text(b->bytes), "text-anchor=\"end\"");
            rectangle(*b, left, y_, length, 16, "");
            text(left + length + 6, y_ + 12, 11,
                 fitting(description_of(*b) + (b->on_host ? ", on the host" : ""), width_ - length, 11));
            y_ += 19;
        }
        if (left_out > 0) {
            text(left, y_ + 12, 11,
                 fmt::format("and {} smaller ones, {} together", left_out, bytes_text(rest)));
            y_ += 19;
        }
        y_ += 8;
    }

    void legend() {
        double x = 20;
        y_ += 8;
        for (std::size_t k = 0; k < colors.size(); ++k) {
            if (!used_[k]) continue;
            const std::string name = name_of(static_cast<Kind>(k));
            const double wide = 34 + 7.0 * static_cast<double>(name.size());
            if (x + wide > left + width_) x = 20, y_ += 20;
            body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"13\" fill=\"{}\"/>\n",
                                 x, y_, colors[k]);
            text(x + 18, y_ + 11, 12, name);
            x += wide;
        }
        y_ += 18;
    }

    const MemoryPlan& plan_;
    std::size_t steps_ = 1;
    double step_width_ = 0, width_ = 0, y_ = 0;
    std::array<bool, colors.size()> used_{};
    std::string body_;
};

}  // namespace

std::string MemoryPlan::svg() const {
    require_present(*this);
    return Picture(*this).run();
}

}  // namespace bitale
