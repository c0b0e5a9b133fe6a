// All timers of the daemon: a heap, and one callback of the event loop armed for the earliest of them. Whatever is due
// in one turn fires in that turn, in order of its moment. Nothing is armed when nothing is due.

import NIOCore
import Protocols

/// Something that is to happen at a moment. Set it as often as you like; it fires once per setting.
@Loop final class Timer {
  fileprivate var due: Instant = 0
  fileprivate var position = -1
  /// Its moment has come, and it is about to fire in this turn.
  fileprivate var isFiring = false
  fileprivate let fire: @Loop (Instant) -> Void

  /// A timer that is not set. `fire` is given the present moment.
  init(_ fire: @escaping @Loop (Instant) -> Void) {
    self.fire = fire
  }

  /// Sets the moment, or nil for none.
  func set(_ moment: Instant?) {
    isFiring = false
    if let moment {
      guard position < 0 || due != moment else { return }
      Timers.shared.insert(self, at: moment)
    } else if position >= 0 {
      Timers.shared.remove(self)
    }
  }
}

@Loop final class Timers {
  static let shared = Timers()

  private static let breath: Nanoseconds = 20 * .microsecond

  private var heap: [Timer] = []
  private var armed: (moment: Instant, callback: NIOScheduledCallback)?
  private var due: [Timer] = []
  private var isBusy = false

  /// What the event loop calls.
  private struct Callback: NIOScheduledCallbackHandler {
    func handleScheduledCallback(eventLoop: some EventLoop) {
      Loop.assumeIsolated { Timers.shared.fireWhatIsDue() }
    }
  }

  private func fireWhatIsDue() {
    armed = nil
    isBusy = true
    let now = Clock.monotonic()
    // Everything that is due first, so that a timer that sets itself to the past again cannot take another's turn.
    while let first = heap.first, first.due <= now {
      remove(first)
      first.isFiring = true
      due.append(first)
    }
    for timer in due where timer.isFiring {
      timer.isFiring = false
      timer.fire(Clock.monotonic())
    }
    due.removeAll(keepingCapacity: true)
    isBusy = false
    arm()
  }

  fileprivate func insert(_ timer: Timer, at moment: Instant) {
    if timer.position < 0 {
      timer.position = heap.count
      timer.due = moment
      heap.append(timer)
      rise(timer.position)
    } else {
      let later = moment > timer.due
      timer.due = moment
      if later { sink(timer.position) } else { rise(timer.position) }
    }
    arm()
  }

  fileprivate func remove(_ timer: Timer) {
    let position = timer.position
    timer.position = -1
    let last = heap.removeLast()
    if position < heap.count {
      put(last, position)
      rise(position)
      sink(last.position)
    }
    arm()
  }

  /// Arms the loop for the earliest timer. An armed moment that is merely too early is left: a timer that moves on with
  /// every message would otherwise cost a re-arming each; it fires once for nothing and is right from then on.
  private func arm() {
    guard !isBusy, let first = heap.first else { return }
    if let armed, armed.moment <= first.due { return }
    // Never at once: the event loop would run it again and again before it looked at any link.
    let moment = max(first.due, Clock.monotonic() + Self.breath)
    if let armed {
      if armed.moment <= moment { return }
      armed.callback.cancel()
    }
    let deadline = NIODeadline.uptimeNanoseconds(UInt64(moment))
    if let callback = try? Loop.eventLoop.scheduleCallback(at: deadline, handler: Callback()) {
      armed = (moment, callback)
    }
  }

  private func put(_ timer: Timer, _ position: Int) {
    heap[position] = timer
    timer.position = position
  }

  private func rise(_ start: Int) {
    var position = start
    let timer = heap[position]
    while position > 0, case let parent = (position - 1) / 2, heap[parent].due > timer.due {
      put(heap[parent], position)
      position = parent
    }
    put(timer, position)
  }

  private func sink(_ start: Int) {
    var position = start
    let timer = heap[position]
    while case var child = 2 * position + 1, child < heap.count {
      if child + 1 < heap.count, heap[child + 1].due < heap[child].due { child += 1 }
      if heap[child].due >= timer.due { break }
      put(heap[child], position)
      position = child
    }
    put(timer, position)
  }
}
