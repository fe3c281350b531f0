// Parameters by path.
#include <algorithm>
#include <map>
#include <set>

#include "bitale/train.h"
#include "graph/base/numbers.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "ops/dsl/build.h"

namespace bitale {

// A part of the list, which keeps the parts below it. Those above it are known as long as somebody holds
// them.
struct Parameters::Level {
    std::string path;  // "net.", or empty
    std::vector<Shared> list;
    std::map<std::string, std::shared_ptr<Level>> below;
    std::weak_ptr<Level> above;
};

namespace {

// The part of a path in front of its first point, and what follows it; the latter is empty where there is
// none.
std::pair<std::string, std::string> divided(const std::string& path) {
    const std::size_t point = path.find('.');
    if (point == std::string::npos) return {path, {}};
    return {path.substr(0, point), path.substr(point + 1)};
}

void require_path(const std::string& path, const std::string& whole, Where where) {
    const bool hollow = path.empty() || path.front() == '.' || path.back() == '.' ||
                        path.find("..") != std::string::npos,
               control = std::any_of(path.begin(), path.end(), is_control_character);
    if (hollow)
        throw GraphError(where, "the parameter " + in_quotes(whole) +
                                    " has an empty name, or an empty part of it; give it a name, as in "
                                    "\"conv1.w\"");
    if (control)
        throw GraphError(where,
                         "the name of the parameter " + in_quotes(whole) + " holds control characters");
}

std::string cell(std::string text, std::size_t width, bool to_the_right) {
    const std::size_t missing = width > text.size() ? width - text.size() : 0;
    return to_the_right ? std::string(missing, ' ') + text : text + std::string(missing, ' ');
}

}  // namespace

Parameters::Parameters() : level_(expressing([] { return std::make_shared<Level>(); })) {}

const std::vector<Shared>& Parameters::list(Where where) const {
    if (!level_)
        throw GraphError(
            where,
            "parameters that were moved from are used; assign others first, or copy instead of moving");
    return level_->list;
}

Parameters Parameters::in(const std::string& path) const try {
    list();
    require_path(path, level_->path + path, {});
    std::shared_ptr<Level> level = level_;
    for (std::string left = path; !left.empty();) {
        const auto [name, rest] = divided(left);
        std::shared_ptr<Level>& next = level->below[name];
        if (!next) {
            next = std::make_shared<Level>();
            next->path = level->path + name + ".";
            next->above = level;
        }
        level = next;
        left = rest;
    }
    return Parameters(level);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Shared Parameters::add(const std::string& name, const Array& value, Where where) try {
    list(where);
    require_path(name, level_->path + name, where);
    return add(shared(value, level_->path + name, where), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Shared Parameters::add(const Shared& parameter, Where where) try {
    list(where);
    const std::string& name = parameter.name(where);
    if (!name.starts_with(level_->path))
        throw GraphError(where, "the variable " + in_quotes(name) + " does not lie below " +
                                    in_quotes(level_->path) +
                                    "; name it so when it is made, or add it to the "
                                    "whole list");
    require_path(name, name, where);
    // The levels from the top of the list to that of the parameter.
    std::vector<std::shared_ptr<Level>> levels{level_};
    while (const std::shared_ptr<Level> above = levels.back()->above.lock()) levels.push_back(above);
    std::reverse(levels.begin(), levels.end());
    for (const Shared& other : levels.front()->list) {
        if (other.name() != name) continue;
        if (other.state() == parameter.state())
            throw GraphError(where, "the parameter " + in_quotes(name) + " is listed twice");
        throw GraphError(where, "two parameters have the name " + in_quotes(name) + ", made at " +
                                    other.state()->where.text() + " and at " +
                                    parameter.state()->where.text() + "; give each a name of its own");
    }
    const std::string below = name.substr(level_->path.size());
    if (const std::size_t point = below.rfind('.'); point != std::string::npos)
        for (Parameters part = in(below.substr(0, point)); part.level_ != level_;
             part = Parameters(part.level_->above.lock()))
            levels.push_back(part.level_);
    for (const auto& level : levels)
        if (level->list.size() == level->list.capacity()) level->list.reserve(2 * level->list.size() + 1);
    for (const auto& level : levels) level->list.push_back(parameter);
    return parameter;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

const Shared& Parameters::operator[](std::size_t k) const {
    if (k >= size())
        throw IndexError("there is no parameter " + std::to_string(k) + ": the list has " +
                         std::to_string(size()));
    return list()[k];
}

const Shared& Parameters::operator[](const std::string& name) const try {
    const std::vector<Shared>& all = list();
    const std::string whole = level_->path + name;
    std::set<std::string> known;
    for (const Shared& p : all) {
        if (p.name() == whole) return p;
        known.insert(p.name());
    }
    std::string like;
    for (const std::string& other : names_like(whole, known))
        like += (like.empty() ? "; did you mean " : ", ") + in_quotes(other);
    throw GraphError("there is no parameter " + in_quotes(whole) + like + (like.empty() ? "" : "?"));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

std::string Parameters::summary() const try {
    std::vector<std::vector<std::string>> rows{{"parameter", "dtype", "shape", "numbers", "bytes"}};
    std::int64_t numbers = 0, bytes = 0;
    for (const Shared& p : list()) {
        const std::int64_t count = count_of(p.shape()), size = count * bytes_of(p.dtype());
        rows.push_back({printable(p.name()), std::string(name_of(p.dtype())), text_of(p.shape()),
                        std::to_string(count), std::to_string(size)});
        numbers += count;
        bytes += size;
    }
    rows.push_back({"total", "", "", std::to_string(numbers), std::to_string(bytes)});
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows)
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c)
            text += (c == 0 ? "" : "  ") + cell(row[c], widths[c], c >= 3);
        text += '\n';
    }
    return text;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
