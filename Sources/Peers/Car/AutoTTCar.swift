// The AutoTT car seen from its phone: the Python program on a Raspberry Pi that drives two motors, as it really behaves. This
// file owns what it is made of; AutoTTCarLife its beginning and end, AutoTTCarThread its receiving thread, AutoTTCarFrames what
// a frame does, AutoTTCarVoice all it says, CarSteering who drives. It must never be better than the original, unless it is asked to be.
// Facts: autott.md §1 to §8 and §10; §11 and the seed's text for `documented`.
//
//   main link            the phone, one for the life of a program: `down` is its end of file, of which the car knows nothing
//   any other link       a client of the video server
//   resetLink(main)      the program ends (`hasEnded`), or lets its client go

import Protocols

/// A simulated car. Each program is one of these; after `hasEnded` a new one takes its place.
public struct AutoTTCar: Machine {
  /// Which car it is.
  public enum Dialect: String, CaseIterable, Sendable {
    /// The program as it was left: autott.md §1 to §10.
    case asBuilt = "as-built"
    /// A device as the app's description has it: bare `%^%`, and a program without the original's traps.
    case documented
  }

  public let schema = Schema()
  let dialect: Dialect
  let flaws: Set<CarFlaw>
  let faults: [CarFault]
  let modes: [CarMode]
  let isInstant: Bool
  var noise: Noise
  var life = Life.waiting
  var cameAt: Instant = 0

  // The receiving thread.
  var receiver: CarReceiver
  var steps: [Step] = []
  var restsUntil: Instant?
  /// Since when the thread looks for a picture that was fetched.
  var awaitsPictureSince: Instant?
  /// Since the stream is on, a client has had a picture.
  var pictureWasFetched = false
  var owesStarted = false
  var reads = 0
  var triggered: Set<Int> = []
  var hasLagged = false

  // What it says, and to whom.
  var sendQueue = SendQueue(baud: nil)
  var heldBack: [UInt8] = []
  /// What other threads will say.
  var plan: [(due: Instant, bytes: [UInt8])] = []
  var nextLook: Instant?
  var warned: Set<String> = []
  var feeds: [LinkName: CarFeed] = [:]
  var lastFeedSend: SendID = AutoTTCar.firstFeedSend
  var pictures = 0
  var told = CarBody()

  // What it does.
  var body = CarBody()
  var steering = CarSteering.tilt(TiltSteering(hasIndicators: false))
  /// A follower of the line whose thread nobody ended.
  var orphanedLine: LineSteering?
  var lineDue: Instant?
  var pictureSize = CarPictureSize.medium
  /// Index of the mode chosen last.
  public internal(set) var mode = 0
  /// The documented car obeyed ShutDown: no program comes after this one.
  public internal(set) var isOff = false

  static let firstFeedSend: SendID = 0x8000_0000

  /// A car before its client. `without` takes away flaws of the original; `seed` chooses where messages are cut.
  public init(
    _ dialect: Dialect = .asBuilt, without: Set<CarFlaw> = [], faults: [CarFault] = [], isInstant: Bool = false, seed: UInt64 = 1
  ) {
    self.dialect = dialect
    // The documented car notices no end of file either: nothing in its description says that it does.
    flaws = (dialect == .asBuilt ? Set(CarFlaw.allCases) : [.deaf]).subtracting(without)
    self.faults = faults
    self.isInstant = isInstant
    let ordinary = dialect == .asBuilt ? CarMode.asBuilt : CarMode.documented
    modes = faults.contains { $0.kind == .longModes } ? CarMode.long(ordinary) : ordinary
    noise = Noise(seed: seed)
    receiver = CarReceiver(reassembles: !flaws.contains(.reassembly))
  }

  /// What the motors are told now.
  public var motors: CarWheels { body.wheels }
  /// `off`, or `low` or `high` with `left` and `right` for indicators.
  public var lights: String { body.lights.text }
  public var isCameraOn: Bool { body.isCameraOn }
  /// Whoever asks for the video now gets pictures.
  public var isStreaming: Bool { body.isStreaming }
  /// It drives only after Continue.
  public var isStopped: Bool { steering.isStopped }
  /// It would let a client in.
  public var isWaiting: Bool { life == .waiting }
  /// The program is over.
  public var hasEnded: Bool { life == .ended }
  /// There is room for more of what the client sends. A program that is busy does not read, and its kernel holds the rest.
  public var hasRoom: Bool { receiver.hasRoom }

  public var nextWake: Instant? {
    var due = [sendQueue.nextDue, plan.first?.due, restsUntil, nextLook, lineDue].compactMap(\.self)
    switch life {
    case .settingUp(let until), .leaving(let until): due.append(until)
    default: break
    }
    due += feeds.values.compactMap { $0.nextDue(isStreaming: isStreaming) }
    return due.min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): clientCame(at: now)
    case .linkChanged(.main, .down): clientWent(at: now, &effects)
    case .linkChanged(let name, .up): feeds[name] = CarFeed()
    case .linkChanged(let name, .down): feeds[name] = nil
    case .received(.main, let bytes): receiver.hold(bytes)
    case .received(let name, let bytes): feeds[name]?.take(bytes, isStreaming: body.isStreaming, at: now)
    case .sent(let id, let failure):
      if id >= AutoTTCar.firstFeedSend {
        sendOfFeed(id, failed: failure != nil, at: now)
      } else {
        sendQueue.sent(id)
        if failure != nil { sendQueue.clear(at: now) }
      }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated car takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    runLife(at: now, &effects)
    runThread(at: now, &effects)
    runLine(at: now)
    lookAtHealth(at: now)
    tellBody(&effects)
    speak(at: now, &effects)
    serveFeeds(at: now, &effects)
  }

  func hasFault(_ kind: CarFault.Kind) -> Bool { faults.contains { $0.kind == kind } }
}
