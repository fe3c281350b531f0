#include "gpu/record.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace bench {

Record::Record(std::string file, Json head, std::vector<std::string> only)
    : file_(std::move(file)), text_(std::move(head)), only_(std::move(only)) {
    text_["finished"] = false;
    text_["running"] = nullptr;
    text_["items"] = Json::object();
    write();
}

bool Record::wanted(const std::string& name) const {
    return only_.empty() || std::find(only_.begin(), only_.end(), name) != only_.end();
}

bool Record::item(const std::string& name, const std::function<Json()>& run) {
    if (!wanted(name)) return false;
    Json entry = Json::object();
    std::string state = "passed", why;
    const auto start = std::chrono::steady_clock::now();
    if (stopped()) {
        state = "skipped";
        why = stopped_;
    } else {
        text_["running"] = name;
        write();
        try {
            entry = run();
        } catch (const NotHere& e) {
            state = "skipped";
            why = e.what();
        } catch (const Wrong& e) {
            state = "failed";
            why = e.what();
            entry = e.found();
        } catch (const std::exception& e) {
            state = "failed";
            why = e.what();
        }
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    Json result = {{"state", state}, {"seconds", seconds.count()}};
    if (!why.empty()) result[state == "failed" ? "error" : "why"] = why;
    result.update(entry);
    text_["items"][name] = std::move(result);
    text_["running"] = nullptr;
    const bool passed = state == "passed";
    failed_ = failed_ || state == "failed";
    write();
    std::printf("%8s  %s%s%s\n", state.c_str(), name.c_str(), why.empty() ? "" : ": ", why.c_str());
    std::fflush(stdout);
    if (state == "failed" && gone && !stopped()) {
        if (const std::string reason = gone(); !reason.empty()) stop(name + " failed, and " + reason);
    }
    return passed;
}

void Record::found(const Json& so_far) {
    Json entry = {{"state", "running"}};
    entry.update(so_far);
    text_["items"][text_["running"].get<std::string>()] = std::move(entry);
    write();
}

void Record::set(const std::string& field, Json value) {
    text_[field] = std::move(value);
    write();
}

int Record::finish() {
    text_["finished"] = true;
    write();
    return failed_ ? 1 : 0;
}

void Record::write() const {
    if (file_.empty()) return;
    const std::string fresh = file_ + ".new";
    std::ofstream file(fresh, std::ios::binary);
    file << text_.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    file.close();
    if (!file) throw std::runtime_error("cannot write " + fresh);
    std::filesystem::rename(fresh, file_);
}

}  // namespace bench
