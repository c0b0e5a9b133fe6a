// The connections of one drive, so that nothing waits for anything else: one holds the lease, one carries set-points, one
// stops, one presses buttons, one watches. Owns what was asked on each and not answered yet; must never queue a set-point behind another.

import CLinux
import Glibc
import Protocols

struct DriveConnections {
  private let holder: Client
  private let driver: Client
  private let brake: Client
  private let watcher: Client
  private let buttons: Client
  private let device: String
  /// The lease, once it was given.
  private(set) var lease: String?
  /// A stop waits for its answer.
  private var isBraking = false
  private var brakesAgain = false
  /// What the buttons are to be, by property, the next first; and the one that was asked for and not answered yet.
  private var presses: [(property: String, isDown: Bool)] = []
  private var pressing: (property: String, isDown: Bool)?

  /// Asks for the lease of a device, and for news of these properties of it.
  init(_ device: String, _ deadline: Int, watching properties: [String], connect: () throws(Failure) -> Client) throws(Failure) {
    self.device = device
    holder = try connect()
    driver = try connect()
    brake = try connect()
    watcher = try connect()
    buttons = try connect()
    try holder.begin(Contract.Drive.self, .init(device: device, deadlineMilliseconds: deadline), more: true)
    try watcher.begin(
      Contract.Watch.self, .init(references: properties.map { "\(device).\($0)" }, minimumIntervalMilliseconds: 50), more: true)
  }

  var descriptors: [Int32] { [holder, driver, brake, watcher, buttons].map(\.descriptor) }

  /// Whether the lease was given just now; fails with the reason where it was refused or is lost.
  mutating func receiveLease() throws(Failure) -> Bool {
    guard let result = try holder.next(Contract.Drive.self) else { return false }
    defer { lease = result.lease }
    return lease == nil
  }

  /// What there is to see.
  func receiveUpdate() throws(Failure) -> Contract.Watch.Result? { try watcher.next(Contract.Watch.self) }

  /// Runs a motion action on the connection of set-points.
  func run(_ action: String, _ arguments: [String: Value] = [:]) throws(Failure) {
    let parameters = Contract.Call.Parameters(
      device: device, action: action, arguments: arguments.isEmpty ? nil : arguments, lease: lease)
    try driver.begin(Contract.Call.self, parameters)
  }

  /// Whether the device answered. A refusal that the lease outlives is given back in words.
  func receiveReply() throws(Failure) -> (came: Bool, refusal: String?) {
    do throws(Failure) { return (try driver.next(Contract.Call.self) != nil, nil) } catch {
      switch error {
      case .refused(.deviceError(_, _, let message)): return (true, message)
      case .refused(.outOfRange): return (true, error.message)
      case .refused(.leaseLost): throw Self.reason(for: error, from: holder)
      default: throw error
      }
    }
  }

  /// Stops the car, past every set-point.
  mutating func stop() throws(Failure) {
    guard !isBraking else { return brakesAgain = true }
    isBraking = true
    try brake.begin(Contract.Call.self, .init(device: device, action: "stop"))
  }

  /// Presses a button or releases it, behind what was asked before.
  mutating func press(_ property: String, _ isDown: Bool) throws(Failure) {
    presses.removeAll { $0.property == property }
    presses.append((property, isDown))
    try pressNext()
  }

  /// Whether a button is pressed, as far as it was asked for here and is not answered yet.
  func isAskedToBeDown(_ property: String) -> Bool? {
    (presses + (pressing.map { [$0] } ?? [])).first { $0.property == property }?.isDown
  }

  /// What a button is now, or why it is not what was asked; nil while there is no answer.
  mutating func receiveButtonReply() throws(Failure) -> Result<Contract.Reading, ContractError>? {
    let answer: Result<Contract.Reading, ContractError>
    do throws(Failure) {
      guard let result = try buttons.next(Contract.Set.self) else { return nil }
      answer = .success(result.reading)
    } catch .refused(let error) { answer = .failure(error) }
    pressing = nil
    try pressNext()
    return answer
  }

  private mutating func pressNext() throws(Failure) {
    guard pressing == nil, !presses.isEmpty else { return }
    let next = presses.removeFirst()
    pressing = next
    try buttons.begin(Contract.Set.self, .init(device: device, property: next.property, value: .bool(next.isDown)))
  }

  /// Waits until all buttons were answered, or the time is over.
  mutating func finishPressing(until limit: Double) throws(Failure) {
    while pressing != nil, Clock.monotonic < limit {
      Self.wait(for: [buttons.descriptor], until: limit)
      _ = try receiveButtonReply()
    }
  }

  /// Waits until the last stop was answered, and fails where it was refused or the time is over: the vehicle may be moving.
  mutating func finishStopping(until limit: Double) throws(Failure) {
    while isBraking {
      guard Clock.monotonic < limit else { throw .other("not confirmed: \(device) may still be driving; no answer to stop") }
      Self.wait(for: [brake.descriptor], until: limit)
      if let refusal = try receiveStopReply() { throw .other(refusal) }
    }
  }

  /// The refusal of a stop that was answered with one.
  mutating func receiveStopReply() throws(Failure) -> String? {
    var refusal: String?
    do throws(Failure) {
      guard try brake.next(Contract.Call.self) != nil else { return nil }
    } catch .refused(let error) { refusal = error.message }
    isBraking = false
    if brakesAgain {
      brakesAgain = false
      try stop()
    }
    return refusal
  }

  /// The connection that holds the lease knows better why it is lost; its word comes at about the same time.
  static func reason(for failure: Failure, from holder: Client) -> Failure {
    let limit = Clock.monotonic + 0.3
    do throws(Failure) {
      while Clock.monotonic < limit {
        _ = try holder.next(Contract.Drive.self)
        wait(for: [holder.descriptor], until: limit)
      }
    } catch { return error }
    return failure
  }

  /// Waits until one of these has something to read, a signal comes or the time does.
  @discardableResult
  static func wait(for descriptors: [Int32], until time: Double) -> [Bool] {
    var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let nanoseconds = Int64(max(0, min(60, time - Clock.monotonic)) * 1e9)
    let count = clinux_poll(&entries, entries.count, nanoseconds)
    return entries.map { count > 0 && $0.revents != 0 }
  }
}
