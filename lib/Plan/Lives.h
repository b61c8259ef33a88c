// When buffers live, from what touches them and from the table of actions; see
// Actions.h.
//
//   Lives lives(table, buffers.size());
//   lives.setRepeats(list, repeats);           // of each list that has some
//   lives.touch({buffer, list, instruction});  // all, in any order
//   lives.finish();
//   lives.meet(0, 1);                          // may they share bytes?
//   lives.copiesOf(0);                         // at once; 1F1B needs several
//
// A buffer that only lists of microbatches touch lives anew in each microbatch,
// from the first touch to the last one in that microbatch's own actions. What
// other lists touch too, or what microbatches add up in, lives from the first
// touch to the last one of the whole step; with `once` among them, always.
// Nothing else outlives a step. A buffer that a Send reads has bytes of its own
// in the whole step, since the Send ends at some time after its action.
// Microbatches reuse its copies, and wait for the Send (Transfers.h).
//
// What a list touches only within one turn of a repeat lives anew in each turn.
// If code outside of the repeat touches it too, or a view that advances, it
// lives through all turns, from the repeat's first instruction to its last.
//
// Buffers of one form, first list and last list are a class, and answers are
// worked out for classes: the cost is actions times classes, not instructions.
#pragma once

#include "lib/Plan/Actions.h"
#include "lib/Plan/Copies.h"
#include "lib/Plan/Repeats.h"

namespace meshwork::plan {

/// An instruction's use of a buffer.
struct Touch {
  uint32_t buffer, list, instruction;
  /// It sets the buffer in the step's first action and adds to it later
  /// (Accumulate::after_first), so the sum lives from one to the next.
  bool addsUp = false;
  /// By a view that each turn of a repeat finds elsewhere.
  bool advances = false;
  /// A Send reads it, which outlives its action, so nothing else may have these
  /// bytes in a step.
  bool isSent = false;
};

/// A piece of the line of time below, both ends included.
struct Span {
  uint64_t begin, end;
};

class Lives {
public:
  /// `table` outlives this.
  Lives(const ActionTable &table, uint32_t buffers);
  /// Of one list, before its first touch.
  void setRepeats(uint32_t list, Repeats of) { repeats[list] = std::move(of); }
  void touch(const Touch &touch);
  /// The runtime writes it when a microbatch begins.
  void touchInput(uint32_t buffer);
  /// It lives from load to exit, so there is one for all microbatches, unless
  /// it is an input of theirs.
  void keep(uint32_t buffer) { ranges[buffer].isKept = true; }
  /// After the last touch; before, nothing below means anything.
  void finish();

  bool isTouched(uint32_t buffer) const { return ranges[buffer].group != none; }
  /// Whether both are alive at the same time, ever.
  bool meet(uint32_t a, uint32_t b) const;
  /// The most copies that are alive at once. All copies are one range of bytes
  /// to the rest of this: it is alive while one of them is.
  uint32_t copiesOf(uint32_t buffer) const;
  /// Which one each action uses, by groupOf.
  Copies copies() const;
  /// Whether it lives anew in each microbatch.
  bool livesInMicrobatch(uint32_t buffer) const {
    return isTouched(buffer) &&
           classes[ranges[buffer].group].form == Form::microbatch;
  }
  /// The number of the class that the buffer is in; only of one that is
  /// touched.
  uint32_t groupOf(uint32_t buffer) const { return ranges[buffer].group; }

  // The line: all situations that differ, one after the other, with a place for
  // each instruction of the list that runs then. Actions in which the same
  // classes begin, end and live on are one situation, so the line is short,
  // however many microbatches there are.
  uint64_t length() const { return lineLength; }
  struct Place {
    uint32_t list, instruction;
  };
  Place placeAt(uint64_t time) const;
  /// Where the buffer is alive, in order.
  std::vector<Span> spansOf(uint32_t buffer) const;

  // The first and the last touch, in the order in which lists run.
  Place firstTouch(uint32_t buffer) const;
  Place lastTouch(uint32_t buffer) const;
  /// Lives as long as the run: `once` and later lists touch it.
  bool isAlways(uint32_t buffer) const;

private:
  static constexpr uint32_t none = UINT32_MAX;
  enum class Form : uint8_t { microbatch, step, once, always };
  /// Of touches in one list.
  struct InList {
    uint32_t list, first, last;
  };
  struct Range {
    std::vector<InList> lists;
    bool addsUp = false, isKept = false, isInput = false, isSent = false;
    uint32_t group = none;        // classes[group]
    uint32_t first = 0, last = 0; // instructions of the class's two lists
  };
  struct Class {
    Form form;
    uint32_t firstList, lastList;
    bool isSent = false;
    std::vector<uint32_t> lists = {}; // as CopyClass has them
    uint32_t copies = 1;
    bool isLike(const Class &other) const {
      return form == other.form && firstList == other.firstList &&
             lastList == other.lastList && isSent == other.isSent &&
             lists == other.lists;
    }
  };
  /// One class on the way through the table.
  struct Walk {
    LifeWalk ends;
    uint32_t open = 0; // lives that have begun and not ended
  };
  /// What a class does in one action, as bits.
  enum State : uint8_t { livesOn = 1, begins = 2, ends = 4, beginsAndEnds = 8 };
  struct Situation {
    uint32_t list;
    uint64_t begin;              // on the line
    std::vector<uint8_t> states; // by class
  };

  Class classOf(const Range &range) const;
  std::vector<uint32_t> listsInAnyOrder(const Range &range) const;
  void classify(Range &range);
  void touchTurns(Range &range);
  void findSituations();
  LifeWalk::Ends endsAt(uint32_t action, const Class &of, Walk &walk) const;
  std::vector<uint8_t> statesAt(uint32_t action, std::vector<Walk> &walks);
  void addSituation(uint32_t list, std::vector<uint8_t> states);
  void relate();

  const ActionTable &table;
  std::vector<Repeats> repeats; // by list
  std::vector<Range> ranges;    // by buffer
  std::vector<Class> classes;
  std::vector<Situation> situations;
  uint64_t lineLength = 0;
  /// By pair of classes: under which conditions they meet; see relate().
  std::vector<uint8_t> relations;
};

} // namespace meshwork::plan
