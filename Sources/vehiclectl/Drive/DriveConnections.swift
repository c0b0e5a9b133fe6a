// The connections of a manual drive. The lease, setpoints, Stop, buttons and Watch each have their own, so that no call waits for another
// one. At most one setpoint is in flight.

import CLinux
import Glibc
import Protocols
import Varlink

struct DriveConnections {
  /// The connection that holds the lease.
  private let holder: Client
  /// The connection for setpoints and motion actions.
  private let driver: Client
  /// The connection for Stop.
  private let stopper: Client
  private let watcher: Client
  private let buttons: Client
  private let device: String
  /// The lease, once it is granted.
  private(set) var lease: String?
  /// Whether the setpoint in flight sets a property; otherwise it runs an action.
  private var setsProperty = false
  /// Whether a Stop is in flight.
  private var isStopping = false
  /// Whether another Stop was requested while one is in flight.
  private var anotherStopRequested = false
  /// Queued button changes, at most one per property.
  private var queuedPresses: [(property: String, isDown: Bool)] = []
  private var pressInFlight: (property: String, isDown: Bool)?

  /// Requests the lease of a device, and watches these properties.
  init(_ device: String, _ deadline: Int, watching properties: [String], connect: () throws(Failure) -> Client) throws(Failure) {
    self.device = device
    holder = try connect()
    driver = try connect()
    stopper = try connect()
    watcher = try connect()
    buttons = try connect()
    try holder.begin(Contract.Drive.self, .init(device: device, deadlineMilliseconds: deadline), more: true)
    try watcher.begin(
      Contract.Watch.self, .init(references: properties.map { "\(device).\($0)" }, minimumIntervalMilliseconds: 50), more: true)
  }

  var descriptors: [Int32] { [holder, driver, stopper, watcher, buttons].map(\.descriptor) }

  /// Reads a reply on the lease's connection. Returns whether it grants the lease; throws the reason if the lease was rejected or lost.
  mutating func receiveLease() throws(Failure) -> Bool {
    guard let result = try holder.next(Contract.Drive.self) else { return false }
    defer { lease = result.lease }
    return lease == nil
  }

  /// The next reply of Watch, or nil.
  func receiveUpdate() throws(Failure) -> Contract.Watch.Result? { try watcher.next(Contract.Watch.self) }

  /// Sends a motion action or property on the connection for setpoints.
  mutating func send(_ request: DriveRequest) throws(Failure) {
    switch request {
    case .set(let property, let value):
      setsProperty = true
      try driver.begin(Contract.Set.self, .init(device: device, property: property, value: value, lease: lease))
    case .run(let action, let arguments, _):
      setsProperty = false
      let parameters = Contract.Call.Parameters(
        device: device, action: action, arguments: arguments.isEmpty ? nil : arguments, lease: lease)
      try driver.begin(Contract.Call.self, parameters)
    }
  }

  /// Reads the reply to a setpoint. Returns whether there is one, and the message of an error that does not end the lease.
  func receiveReply() throws(Failure) -> (received: Bool, refusal: String?) {
    do throws(Failure) {
      let received = setsProperty ? try driver.next(Contract.Set.self) != nil : try driver.next(Contract.Call.self) != nil
      return (received, nil)
    } catch {
      switch error {
      case .rejected(.deviceError(_, _, let message)): return (true, message)
      case .rejected(.outOfRange): return (true, error.message)
      case .rejected(.leaseLost), .rejected(.notConnected): throw Self.reason(for: error, from: holder)
      default: throw error
      }
    }
  }

  /// Runs the action `stop` without waiting for setpoints in flight.
  mutating func stop() throws(Failure) {
    guard !isStopping else { return anotherStopRequested = true }
    isStopping = true
    try stopper.begin(Contract.Call.self, .init(device: device, action: "stop"))
  }

  /// Waits for the reply to the setpoint in flight, if any; then sends a last setpoint and waits for its reply. Throws if the last setpoint
  /// is rejected, or if a reply is missing at `end`, because the vehicle may still be moving.
  mutating func finish(with neutral: DriveRequest, hasSetPointInFlight: Bool, until end: Double) throws(Failure) {
    for sends in hasSetPointInFlight ? [false, true] : [true] {
      if sends { try send(neutral) }
      while true {
        let (received, refusal) = try receiveReply()
        if received, let refusal, sends { throw .other(refusal) }
        if received { break }
        guard Clock.monotonic < end else { throw .other("zero not confirmed: no reply from vehicled; \(device) may still be driving") }
        Client.wait(for: [driver.descriptor], until: end)
      }
    }
  }

  /// Queues a button change.
  mutating func press(_ property: String, _ isDown: Bool) throws(Failure) {
    queuedPresses.removeAll { $0.property == property }
    queuedPresses.append((property, isDown))
    try pressNext()
  }

  /// The requested state of a button; nil if no change is queued or in flight.
  func requestedState(of property: String) -> Bool? {
    (queuedPresses + (pressInFlight.map { [$0] } ?? [])).first { $0.property == property }?.isDown
  }

  /// The new state of a button, or the error; nil while there is no reply.
  mutating func receiveButtonReply() throws(Failure) -> Result<Contract.Reading, ContractError>? {
    let answer: Result<Contract.Reading, ContractError>
    do throws(Failure) {
      guard let result = try buttons.next(Contract.Set.self) else { return nil }
      answer = .success(result.reading)
    } catch .rejected(let error) { answer = .failure(error) }
    pressInFlight = nil
    try pressNext()
    return answer
  }

  private mutating func pressNext() throws(Failure) {
    guard pressInFlight == nil, !queuedPresses.isEmpty else { return }
    let next = queuedPresses.removeFirst()
    pressInFlight = next
    try buttons.begin(Contract.Set.self, .init(device: device, property: next.property, value: .bool(next.isDown)))
  }

  /// Waits for the replies to all button changes, at most until `end`.
  mutating func finishPressing(until end: Double) throws(Failure) {
    while pressInFlight != nil, Clock.monotonic < end {
      Client.wait(for: [buttons.descriptor], until: end)
      _ = try receiveButtonReply()
    }
  }

  /// Waits for the reply to the last Stop. Throws if Stop is rejected, or has no reply at `end`, because the vehicle may still be moving.
  mutating func finishStopping(until end: Double) throws(Failure) {
    while isStopping {
      guard Clock.monotonic < end else { throw .other("stop not confirmed: no reply from vehicled; \(device) may still be driving") }
      Client.wait(for: [stopper.descriptor], until: end)
      if let refusal = try receiveStopReply() { throw .other(refusal) }
    }
  }

  /// The error message if a Stop was rejected; nil if it was confirmed or there is no reply.
  mutating func receiveStopReply() throws(Failure) -> String? {
    var refusal: String?
    do throws(Failure) {
      guard try stopper.next(Contract.Call.self) != nil else { return nil }
    } catch .rejected(let error) { refusal = error.message }
    isStopping = false
    if anotherStopRequested {
      anotherStopRequested = false
      try stop()
    }
    return refusal
  }

  /// Returns the error that ended the lease, which arrives on the connection that holds the lease at about the same time as `failure`.
  /// Returns `failure` if no error arrives within 0.3 s.
  static func reason(for failure: Failure, from holder: Client) -> Failure {
    let end = Clock.monotonic + 0.3
    do throws(Failure) {
      while Clock.monotonic < end {
        _ = try holder.next(Contract.Drive.self)
        Client.wait(for: [holder.descriptor], until: end)
      }
    } catch { return error }
    return failure
  }
}
