// What a program finds out, item by item, in one JSON file that is whole at any moment.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench {

using Json = nlohmann::ordered_json;

// An item that ran and whose result is wrong: what it found out stays in the file.
class Wrong : public std::exception {
  public:
    Wrong(std::string why, Json found) : why_(std::move(why)), found_(std::move(found)) {}
    const char* what() const noexcept override { return why_.c_str(); }
    const Json& found() const { return found_; }

  private:
    std::string why_;
    Json found_;
};

// An item that cannot be had here, which is no failure.
class NotHere : public std::exception {
  public:
    explicit NotHere(std::string why) : why_(std::move(why)) {}
    const char* what() const noexcept override { return why_.c_str(); }

  private:
    std::string why_;
};

class Record {
  public:
    // `file` may be empty: nothing is written. `only`: names of the items that are run, or all.
    Record(std::string file, Json head, std::vector<std::string> only);

    // Runs an item. Its fields, its state (passed, failed, skipped), its seconds and its error are in the
    // file when this returns; while it runs, the file says so. False unless it passed.
    bool item(const std::string& name, const std::function<Json()>& run);
    // Whether the item is one of those that are run.
    bool wanted(const std::string& name) const;
    // From now on items are skipped, for this reason: the device is gone.
    void stop(const std::string& why) { stopped_ = why; }
    bool stopped() const { return !stopped_.empty(); }
    // Asked after each item that failed; a text that is not empty is a reason to stop.
    std::function<std::string()> gone = {};

    // What the item that runs has found so far goes into the file; it stays there if the process ends.
    void found(const Json& so_far);
    void set(const std::string& field, Json value);
    // The file's last state; the exit status.
    int finish();

  private:
    void write() const;

    const std::string file_;
    Json text_;
    const std::vector<std::string> only_;
    std::string stopped_;
    bool failed_ = false;
};

}  // namespace bench
