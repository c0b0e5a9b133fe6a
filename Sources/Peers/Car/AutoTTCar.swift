// A simulated AutoTT car: a Python program on a Raspberry Pi that drives two motors. The simulated car has the flaws of the original.
// Source: task123/AutoTT as built; the README of task123/AutoTTApp for `documented`.
// Links: `main` is the phone; the other links are clients of the video server. The program serves one phone at a time. In the as-built
// dialect, it does not notice that the phone has closed the connection. `resetLink(main)` means that the program has ended (`hasEnded`), or
// has disconnected the phone.

import Protocols

/// A simulated car, for one run of its program. When `hasEnded` is true, create a new car.
public struct AutoTTCar: Machine {
  /// The variants of the car.
  public enum Dialect: String, CaseIterable, Sendable {
    /// The original program.
    case asBuilt = "as-built"
    /// The device that the app's documentation describes: frames end with `%^%` alone, and the program has no known flaws.
    case documented
  }

  public let schema = Schema()
  let dialect: Dialect
  let flaws: Set<CarFlaw>
  var faults: FaultSet<CarFault.Kind>
  let modes: [CarMode]
  /// Whether all delays are 0.
  let isInstant: Bool
  var random: SeededRandom
  var programState = ProgramState.waiting
  var connectedAt: Instant = 0

  // The receiving thread.
  var receiver: CarReceiver
  var steps: [Step] = []
  /// When the current slow step is complete.
  var waitsUntil: Instant?
  /// When the thread began to wait for a client to fetch a picture, or nil if it is not waiting.
  var awaitsFetchSince: Instant?
  /// Whether a client has fetched a picture since the stream was switched on.
  var pictureWasFetched = false
  /// Whether VideoStreamStarted must be sent when a client fetches a picture.
  var mustSendStarted = false
  var readCount = 0
  /// Whether the fault `lag` has already delayed the next read.
  var isLagOver = false

  // Sending.
  var sendQueue = SendQueue(baud: nil)
  /// A message that the fault `coalesce` holds back until the next one.
  var heldBack: [UInt8] = []
  /// Frames that other threads will send.
  var scheduledFrames: [(due: Instant, bytes: [UInt8])] = []
  var nextHealthCheck: Instant?
  var sentWarnings: Set<String> = []
  /// The clients of the video server.
  var feeds: [LinkName: CarFeed] = [:]
  var lastFeedSend: SendID = AutoTTCar.firstFeedSend
  var pictureCount = 0
  var lastReported = CarState()

  // Driving.
  var state = CarState()
  var steering = CarSteering.tilt(TiltSteering(hasIndicators: false))
  /// Line steering of an earlier mode whose thread is still running.
  var orphanedLine: LineSteering?
  /// When the line-following thread sets the motors next.
  var lineDue: Instant?
  var pictureSize = CarPictureSize.medium
  /// The index of the selected mode.
  public internal(set) var mode = 0
  /// Whether the documented car has executed ShutDown: the program does not restart.
  public internal(set) var isOff = false

  /// The smallest id of a send to a video client. `sendQueue` uses smaller ids.
  static let firstFeedSend: SendID = 0x8000_0000

  /// Creates a car without a phone. `without` removes flaws of the original; `seed` determines where messages are split.
  public init(
    _ dialect: Dialect = .asBuilt, without: Set<CarFlaw> = [], faults: [CarFault] = [], isInstant: Bool = false, seed: UInt64 = 1
  ) {
    self.dialect = dialect
    // The documentation does not mention end of file, so the documented car also ignores it.
    flaws = (dialect == .asBuilt ? Set(CarFlaw.allCases) : [.ignoresClose]).subtracting(without)
    self.faults = FaultSet(faults)
    self.isInstant = isInstant
    let ownModes = dialect == .asBuilt ? CarMode.asBuilt : CarMode.documented
    modes = self.faults.contains(.longModes) ? CarMode.long(ownModes) : ownModes
    random = SeededRandom(seed: seed)
    receiver = CarReceiver(reassembles: !flaws.contains(.reassembly))
  }

  /// The motor setpoints.
  public var motors: CarWheels { state.wheels }
  /// `off`, or `low` or `high` with `left` and `right` for indicators.
  public var lights: String { state.lights.text }
  public var isCameraOn: Bool { state.isCameraOn }
  /// Whether the video server streams pictures.
  public var isStreaming: Bool { state.isStreaming }
  /// Whether the car is stopped until Continue.
  public var isStopped: Bool { steering.isStopped }
  /// Whether the car accepts a phone.
  public var isWaiting: Bool { programState == .waiting }
  /// Whether the program has ended.
  public var hasEnded: Bool { programState == .ended }
  /// Whether the kernel's receive buffer has space. A busy program does not read from it.
  public var hasRoom: Bool { receiver.hasRoom }

  public var nextWake: Instant? {
    var due = [sendQueue.nextDue, scheduledFrames.first?.due, waitsUntil, nextHealthCheck, lineDue].compactMap(\.self)
    switch programState {
    case .settingUp(let until), .leaving(let until): due.append(until)
    default: break
    }
    due += feeds.values.compactMap { $0.nextDue(isStreaming: isStreaming) }
    return due.min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): clientConnected(at: now)
    case .linkChanged(.main, .down): clientDisconnected(at: now, &effects)
    case .linkChanged(let name, .up): feeds[name] = CarFeed()
    case .linkChanged(let name, .down): feeds[name] = nil
    case .received(.main, let bytes): receiver.store(bytes)
    case .received(let name, let bytes): feeds[name]?.receive(bytes, isStreaming: state.isStreaming, at: now)
    case .sent(let id, let failure):
      if id >= AutoTTCar.firstFeedSend {
        feedSent(id, failed: failure != nil, at: now)
      } else {
        sendQueue.sent(id)
        if failure != nil { sendQueue.clear(at: now) }
      }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated car takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    runProgram(at: now, &effects)
    runReceivingThread(at: now, &effects)
    runLineThread(at: now)
    checkHealth(at: now)
    reportState(&effects)
    sendDue(at: now, &effects)
    serveFeeds(at: now, &effects)
  }

  func hasFault(_ kind: CarFault.Kind) -> Bool { faults.contains(kind) }
}
