// The `can` machine: listens to a CAN bus, and publishes the signals in its frames. It sends nothing to the bus: the channel of a slcan
// adapter is opened for listening only, and a socket of the kernel is only read. If no frames arrive, it asks a slcan adapter for its
// status, which shows whether the bus is silent or cannot be read. It opens the channel again after 5 s of silence, and every minute while
// that lasts: the adapter may have been restarted, or have lost its channel to another client.
//
//   down ─ link up ─▶ opening ─▶ listening ◀──▶ silent ◀──▶ opening again      resting: the channel cannot be opened; it is tried again

struct CANBusMachine: Machine {
  /// How frames arrive.
  enum Port: Sendable {
    case slcan, socket
    /// As lines of slcan, without an adapter that takes commands.
    case recording
  }

  private enum State: Sendable {
    case down
    case opening(SLCANOpening)
    /// The same while no frames arrive.
    case reopening(SLCANOpening)
    /// Frames are awaited until this time, which is not moved with each frame.
    case listening(until: Instant)
    /// No frames arrive. The reply to a status query is awaited until this time, or the channel is opened again then; nil: neither.
    case silent(until: Instant?, awaitsStatus: Bool)
    case resting(until: Instant)
  }

  private static let silenceTimeout: Nanoseconds = 3 * .second
  private static let statusTimeout: Nanoseconds = .second
  /// The silence after which the channel is opened again, and the interval after that.
  private static let (firstReopening, reopeningInterval): (Nanoseconds, Nanoseconds) = (5 * .second, 60 * .second)
  private static let restTime: Nanoseconds = 10 * .second
  private static let errorMessage =
    "errors on the CAN bus, and no frames: the bit rate is wrong, or CAN-H and CAN-L are swapped or broken; check bit-rate and wiring"
  private static let unacknowledgedMessage =
    "no frames, and the CAN adapter does not acknowledge the command L (listen only): switch the vehicle on; if no frames arrive then, its "
    + "firmware does not support it: use other firmware or another adapter, see docs/can.md"
  private static let silentMessage =
    "no frames on the CAN bus: switch the vehicle on, and check wiring and bit-rate; the OBD socket of many cars shows only replies"

  let schema: Schema
  private let port: Port
  private let bitRate: Int?
  private var state = State.down
  private var decoder = SLCANDecoder()
  private var table: CANSignalTable
  private var statistics: CANBusStatistics
  /// When the last frame arrived, or listening began.
  private var lastArrival: Instant = 0
  /// Whether the channel has been opened again since then.
  private var hasReopened = false
  /// Whether any frame has arrived since the link came up.
  private var hasFrames = false
  /// Whether the adapter has replied to a command since the link came up, and since its channel was last opened.
  private var (repliesToCommands, hasResponded) = (false, false)
  /// Whether the adapter has acknowledged the command L.
  private var acknowledgesListening = false
  /// What error frames have reported since the last frame.
  private var errors: SLCANStatus = []

  init(_ signals: [CANSignal], _ port: Port, bitRate: Int?) {
    (self.port, self.bitRate) = (port, bitRate)
    let own = CANBusProperty.table
    table = CANSignalTable(signals, firstProperty: own.count)
    var properties = own + signals.map(\.property)
    table.declareLifetimes(&properties)
    schema = Schema(properties: properties)
    statistics = CANBusStatistics(bitRate: bitRate)
  }

  var nextWake: Instant? {
    let due: Instant? =
      switch state {
      case .down: nil
      case .opening(let opening), .reopening(let opening): opening.deadline
      case .listening(let until), .resting(let until): until
      case .silent(let until, _): until
      }
    var wake = due ?? .max
    if let expiry = table.nextExpiry { wake = min(wake, expiry) }
    if let update = statistics.nextUpdate { wake = min(wake, update) }
    return wake == .max ? nil : wake
  }

  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started:
      effects.append(.status("waiting"))
      table.reset(&effects)
      statistics.start(reportsErrors: port == .socket, &effects)
    case .linkChanged(.main, .up):
      (decoder, hasFrames, repliesToCommands, errors) = (SLCANDecoder(), false, false, [])
      table.reset(&effects)
      open(at: now, &effects)
    case .linkChanged(.main, .down): close(&effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .perform(let id, _):
      effects.append(.complete(id, .failure(.refused(code: .readOnly, "the daemon only listens to this bus; its signals are read-only"))))
    case .stopping:
      if port == .slcan, !isDown { effects.send(.main, SLCAN.close) }
      close(&effects)
      effects.append(.stopped)
    case .linkChanged, .received, .sent, .cancelled, .observed, .response, .rows, .time, .stored, .leaseBegan, .leaseEnded, .wake: break
    }
    timeOut(at: now, &effects)
  }

  private var isDown: Bool { if case .down = state { true } else { false } }

  // MARK: The channel

  private mutating func open(at now: Instant, _ effects: inout Effects) {
    guard port == .slcan else {
      if port == .socket { effects.publish(CANBusProperty.adapter.rawValue, .string("SocketCAN")) }
      return listen(at: now, &effects)
    }
    effects.append(.status("connecting"))
    state = .opening(beginOpening(at: now, &effects))
  }

  private mutating func beginOpening(at now: Instant, _ effects: inout Effects) -> SLCANOpening {
    var opening = SLCANOpening(bitRate: bitRate, listensOnly: true)
    effects.send(.main, opening.next(at: now))
    return opening
  }

  private mutating func close(_ effects: inout Effects) {
    state = .down
    statistics.linkWentDown()
    table.reset(&effects)
    effects.append(.status("waiting"))
    effects.append(.fault(nil))
  }

  private mutating func listen(at now: Instant, _ effects: inout Effects) {
    (lastArrival, hasReopened) = (now, false)
    state = .listening(until: now &+ Self.silenceTimeout)
    statistics.linkCameUp(at: now)
    effects.append(.status("listening"))
    effects.append(.fault(nil))
  }

  private mutating func proceed(_ result: SLCANOpening.Result, _ opening: SLCANOpening, at now: Instant, _ effects: inout Effects) {
    var opening = opening
    switch result {
    case .proceed:
      effects.send(.main, opening.next(at: now))
      keep(opening)
    case .opened:
      hasResponded = opening.hasResponded
      repliesToCommands = repliesToCommands || hasResponded
      acknowledgesListening = opening.isAcknowledged
      effects.publish(CANBusProperty.adapter.rawValue, .string(opening.version.map { "slcan \($0)" } ?? "slcan"))
      if case .reopening = state { queryStatus(at: now, &effects) } else { listen(at: now, &effects) }
    case .failed(let reason):
      state = .resting(until: now &+ Self.restTime)
      effects.append(.status("failed"))
      effects.append(.fault(reason))
    }
  }

  private mutating func keep(_ opening: SLCANOpening) {
    if case .reopening = state { state = .reopening(opening) } else { state = .opening(opening) }
  }

  // MARK: Frames

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    if isDown { return }
    guard port != .socket else { return SocketCAN.decode(bytes) { receive($0, at: now, &effects) } }
    if case .listening = state {
      // Without a list of items, because a bus carries thousands of frames per second.
      let arrived = Self.receive(bytes, &decoder, &table, &statistics, &acknowledgesListening, at: now, &effects)
      if arrived { (lastArrival, hasFrames) = (now, true) }
      return
    }
    var items: [SLCANDecoder.Item] = []
    decoder.receive(bytes) { items.append($0) }
    for item in items { receive(item, at: now, &effects) }
  }

  /// Handles the frames in received bytes, and returns whether there were any. What else an adapter says while listening has no meaning,
  /// except for a late acknowledgement of the command that opened the channel.
  private static func receive(
    _ bytes: [UInt8], _ decoder: inout SLCANDecoder, _ table: inout CANSignalTable, _ statistics: inout CANBusStatistics,
    _ isAcknowledged: inout Bool, at now: Instant, _ effects: inout Effects
  ) -> Bool {
    var arrived = false
    decoder.receive(bytes) { item in
      switch item {
      case .frame(let frame):
        arrived = true
        statistics.count(frame, at: now)
        if frame.kind == .data { table.receive(frame, at: now, &effects) }
      case .accepted: isAcknowledged = true
      case .queued, .rejected, .status, .identity, .unknown: break
      }
    }
    return arrived
  }

  private mutating func receive(_ item: SLCANDecoder.Item, at now: Instant, _ effects: inout Effects) {
    switch (state, item) {
    case (.opening(var opening), _), (.reopening(var opening), _):
      let result = opening.receive(item, at: now)
      keep(opening)
      if let result { proceed(result, opening, at: now, &effects) }
    case (_, .frame(let frame)): receive(frame, at: now, &effects)
    case (.silent(_, awaitsStatus: true), .status(let status)):
      hasResponded = true
      reportSilence(status, at: now, &effects)
    // The adapter has no status, or its channel was closed.
    case (.silent(_, awaitsStatus: true), .rejected):
      hasResponded = true
      reportSilence([], at: now, &effects)
    default: break
    }
  }

  private mutating func receive(_ frame: CANFrame, at now: Instant, _ effects: inout Effects) {
    switch state {
    case .listening: break
    case .silent where frame.kind != .error:
      effects.append(.fault(nil))
      listen(at: now, &effects)
    case .silent: break
    case .down, .opening, .reopening, .resting: return
    }
    statistics.count(frame, at: now)
    guard frame.kind != .error else {
      errors.formUnion(frame.errorStatus)
      // The error can be the reason for the silence.
      if case .silent = state { reportSilence(errors, at: now, &effects) }
      return
    }
    (lastArrival, hasFrames, errors) = (now, true, [])
    if frame.kind == .data { table.receive(frame, at: now, &effects) }
  }

  // MARK: Time

  private mutating func timeOut(at now: Instant, _ effects: inout Effects) {
    table.expire(at: now, &effects)
    statistics.update(damagedLines: decoder.damagedLines, reportsErrors: port == .socket, at: now, &effects)
    switch state {
    case .opening(var opening), .reopening(var opening):
      let result = opening.expire(at: now)
      keep(opening)
      if let result { proceed(result, opening, at: now, &effects) }
    case .listening(let until) where now >= until:
      let deadline = lastArrival &+ Self.silenceTimeout
      if now < deadline { state = .listening(until: deadline) } else { fallSilent(at: now, &effects) }
    case .silent(let until?, let awaitsStatus) where now >= until:
      if awaitsStatus {
        reportSilence([], at: now, &effects)
      } else {
        hasReopened = true
        state = .reopening(beginOpening(at: now, &effects))
      }
    case .resting(let until) where now >= until: open(at: now, &effects)
    case .down, .listening, .silent, .resting: break
    }
  }

  private mutating func fallSilent(at now: Instant, _ effects: inout Effects) {
    guard port == .slcan else { return reportSilence(errors, at: now, &effects) }
    queryStatus(at: now, &effects)
  }

  private mutating func queryStatus(at now: Instant, _ effects: inout Effects) {
    state = .silent(until: now &+ Self.statusTimeout, awaitsStatus: true)
    effects.send(.main, SLCAN.status)
  }

  /// Publishes why no frames arrive. A bus that was in use and is now silent without errors is that of a vehicle at rest.
  private mutating func reportSilence(_ status: SLCANStatus, at now: Instant, _ effects: inout Effects) {
    let reopening = hasReopened ? now &+ Self.reopeningInterval : max(now, lastArrival &+ Self.firstReopening)
    state = .silent(until: port == .slcan ? reopening : nil, awaitsStatus: false)
    if !status.isDisjoint(with: [.busError, .errorPassive, .errorWarning]) {
      effects.append(.status("silent"))
      effects.append(.fault(Self.errorMessage))
    } else if port == .slcan, !hasResponded, repliesToCommands || !hasFrames {
      effects.append(.status("silent"))
      effects.append(.fault(SLCANOpening.silentMessage))
    } else if port == .slcan, !acknowledgesListening, !hasFrames {
      effects.append(.status("silent"))
      effects.append(.fault(Self.unacknowledgedMessage))
    } else if hasFrames {
      effects.append(.status("car-asleep"))
      effects.append(.fault(nil))
    } else {
      effects.append(.status("silent"))
      effects.append(.fault(Self.silentMessage))
    }
  }
}
