// All timers of the daemon: a heap, and one timerfd that is armed for the earliest of them. All timers that are due in one turn of the
// loop fire in that turn, in chronological order.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime

/// A one-shot timer. It can be set again at any time, and fires once per setting.
@Loop final class Timer {
  fileprivate var due: Instant = 0
  fileprivate var position = -1
  /// Whether it is due and about to fire in this turn.
  fileprivate var isFiring = false
  fileprivate let fire: @Loop (Instant) -> Void

  /// Creates a timer that is not set. `fire` gets the current time.
  init(_ fire: @escaping @Loop (Instant) -> Void) {
    self.fire = fire
  }

  var isSet: Bool { position >= 0 }

  /// Suspends the task for this time, at least for one turn of the loop.
  static func pause(_ length: Nanoseconds) async {
    await withCheckedContinuation { continuation in Timer { _ in continuation.resume() }.set(Clock.monotonic() + length) }
  }

  /// Sets the time, or stops the timer with nil.
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

  private var heap: [Timer] = []
  /// The time for which the timerfd is armed; nil if it has expired or was never armed.
  private var armed: Instant?
  private var due: [Timer] = []
  /// Whether timers are being fired. The timerfd is armed once at the end.
  private var isFiring = false
  private let descriptor = timerfd_create(CLOCK_MONOTONIC, CInt(TFD_NONBLOCK | TFD_CLOEXEC))

  /// Watches the timerfd with a channel, which costs less per tick than the event loop's own timers (`make bench`, 20 Hz).
  private init() {
    precondition(descriptor >= 0, "cannot create a timer: \(errnoMessage(errno))")
    NIOPipeBootstrap(group: Loop.group)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 64))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Alarm()) }
      }
      .takingOwnershipOfDescriptor(input: descriptor)
      .whenFailure { fatalError("cannot watch the timer: \($0)") }
  }

  /// Receives the expirations of the timerfd.
  private final class Alarm: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      Loop.assumeIsolated { Timers.shared.fireDueTimers() }
    }
  }

  private func fireDueTimers() {
    armed = nil
    isFiring = true
    let now = Clock.monotonic()
    // Collects all due timers first, so that a timer that sets itself to a past time cannot starve the others.
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
    isFiring = false
    arm()
  }

  fileprivate func insert(_ timer: Timer, at moment: Instant) {
    if timer.position < 0 {
      timer.position = heap.count
      timer.due = moment
      heap.append(timer)
      siftUp(timer.position)
    } else {
      let isLater = moment > timer.due
      timer.due = moment
      if isLater { siftDown(timer.position) } else { siftUp(timer.position) }
    }
    arm()
  }

  fileprivate func remove(_ timer: Timer) {
    let position = timer.position
    timer.position = -1
    let last = heap.removeLast()
    if position < heap.count {
      put(last, position)
      siftUp(position)
      siftDown(last.position)
    }
    arm()
  }

  /// Arms the timerfd for the earliest timer, unless it is already armed for an earlier time: a timeout that every message postpones
  /// would otherwise cost a system call each time. An expiration that is too early fires no timer and arms the timerfd again.
  private func arm() {
    guard !isFiring, let first = heap.first else { return }
    if let armed, armed <= first.due { return }
    armed = first.due
    // A time in the past expires at once, but 0 would disarm the timerfd.
    let moment = max(first.due, 1)
    var setting = itimerspec()
    setting.it_value = timespec(tv_sec: Int(moment / .second), tv_nsec: Int(moment % .second))
    timerfd_settime(descriptor, CInt(TFD_TIMER_ABSTIME), &setting, nil)
  }

  private func put(_ timer: Timer, _ position: Int) {
    heap[position] = timer
    timer.position = position
  }

  private func siftUp(_ start: Int) {
    var position = start
    let timer = heap[position]
    while position > 0, case let parent = (position - 1) / 2, heap[parent].due > timer.due {
      put(heap[parent], position)
      position = parent
    }
    put(timer, position)
  }

  private func siftDown(_ start: Int) {
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
