// The steps of a device from its link to its first values, derived from the replies of Watch. No I/O: `now` is an argument, in seconds on
// any monotonic clock. Each step is one line and is reported once per connection.

import Protocols
import Varlink

struct ConnectionSteps {
  enum Outcome: Equatable {
    /// Not finished.
    case waiting
    /// The device has values.
    case hasValues
    /// The links are up, but there has been no progress for some time.
    case idle
    case removed
  }

  /// Seconds after the first value during which the remaining steps, such as the poll rate, are awaited.
  static let settleTime = 5.0
  /// Seconds without progress after which a connected device is considered idle.
  static let idleTime = 15.0
  /// The properties that are steps, in their order. Not every kind has them.
  private static let stepProperties = ["adapter", "vehicle", "protocol", rate]
  /// The measured poll rate, which rises in the first seconds.
  private static let rate = "poll-rate"
  /// The rate is reported once a new measurement differs from the previous one by at most this fraction.
  private static let steadyFraction = 0.1

  let device: String
  /// The last known state of the device.
  private(set) var state: Contract.Device?
  private var properties: [Contract.Property]
  private var readings: [String: Contract.Reading] = [:]
  /// The keys of the steps of this connection that were reported.
  private var reported: Set<String> = []
  /// The last two measured rates.
  private var rates: [Double] = []
  private var wasUp = false
  private var isRemoved = false
  private var firstValueAt: Double?
  private var lastProgress: Double

  init(_ schema: Contract.Schema, at now: Double) {
    (device, properties, lastProgress) = (schema.device, schema.properties, now)
  }

  /// Applies a reply of Watch; returns the new lines.
  mutating func apply(_ result: Contract.Watch.Result, at now: Double) -> [String] {
    if let schema = result.schemas?.first(where: { $0.device == device }) { properties = schema.properties }
    if (result.events ?? []).contains(where: { $0.device == device && $0.name == Contract.Event.removed }) { isRemoved = true }
    if let current = result.snapshot?.first(where: { $0.name == device }) {
      (state, isRemoved) = (current, false)
      readings = Dictionary(current.readings.map { ($0.property, $0) }, uniquingKeysWith: { $1 })
    }
    for reading in result.changes ?? [] where reading.device == device { readings[reading.property] = reading }
    if wasUp, !isUp { (reported, firstValueAt, rates) = ([], nil, []) }
    if let rate = (result.changes ?? []).last(where: { $0.device == device && $0.property == Self.rate })?.value?.number {
      rates = rates.suffix(1) + [rate]
    }
    wasUp = isUp
    let new = report(linkSteps + (isUp ? valueSteps : []))
    if isUp, firstValueAt == nil, !firstValues.isEmpty { firstValueAt = now }
    if !new.isEmpty { lastProgress = now }
    return new
  }

  /// Returns the lines of the steps that were not reported before.
  private mutating func report(_ steps: [Step]) -> [String] { steps.filter { reported.insert($0.key).inserted }.map(\.line) }

  /// The step that is still missing at the end: a rate that is not steady yet.
  mutating func finish() -> [String] { report(rateStep.map { [$0] } ?? []) }

  func outcome(at now: Double) -> Outcome {
    if isRemoved { return .removed }
    guard isUp else { return .waiting }
    if let firstValueAt {
      let steps = properties.map(\.name).filter(Self.stepProperties.contains)
      let isComplete = steps.allSatisfy(isKnown) && (!steps.contains(Self.rate) || reported.contains(Self.rate))
      return isComplete || now - firstValueAt >= Self.settleTime ? .hasValues : .waiting
    }
    return now - lastProgress >= Self.idleTime ? .idle : .waiting
  }

  /// Whether all links are up.
  var isUp: Bool { state.map { $0.links.allSatisfy { $0.state == "up" } } ?? false }

  /// The values that matter most, in the order of the device.
  var firstValues: [Contract.Reading] {
    let main = properties.filter { $0.rank == PropertyRank.headline.rawValue && isKnown($0.name) }
    // A daemon of another version may declare no ranks.
    let found = main.isEmpty ? properties.filter { $0.rank ?? 2 == PropertyRank.main.rawValue && isMeasured($0) && isKnown($0.name) } : main
    return found.prefix(6).compactMap { readings[$0.name] }
  }

  /// What the device is waiting for, with the next attempt; nil if its links are up. `wall` is the Unix time in seconds.
  func obstacle(wall: Double) -> String? {
    guard let link = state?.links.first(where: { $0.state != "up" }) else { return state == nil ? "no state received" : nil }
    let next = link.nextAttempt.map { "; next attempt in \(Format.duration(max(0, Double($0) / 1e6 - wall)))" } ?? ""
    return (link.reason ?? "connecting to \(LinkText.readable(link.url))") + next
  }

  private func isKnown(_ property: String) -> Bool { readings[property]?.value != nil }

  private func isMeasured(_ property: Contract.Property) -> Bool {
    property.group != PropertyGroup.adapter.rawValue && property.group != PropertyGroup.settings.rawValue && property.type != "string"
      && !Self.stepProperties.contains(property.name)
  }

  /// A line, and the key by which it is reported once.
  private typealias Step = (key: String, line: String)

  private var linkSteps: [Step] {
    (state?.links ?? []).map { link in
      let line = (state?.links.count ?? 0 > 1 ? "\(link.name): " : "") + Self.text(link)
      return (line, line)
    }
  }

  private static func text(_ link: Contract.Link) -> String {
    guard link.state == "up" else { return link.reason ?? "connecting to \(LinkText.readable(link.url))" }
    let details = link.details ?? [:]
    let signal = details["signal"].map { String($0.prefix { $0 != "m" }) + "m" }  // without "when found"
    return ["connected", signal, details["mtu"].map { "MTU \($0)" }, details["baud"].map { "\($0) baud" }].compactMap(\.self)
      .joined(separator: ", ")
  }

  private var valueSteps: [Step] {
    let steps = Self.stepProperties.compactMap { name -> Step? in
      guard let reading = readings[name], let value = reading.value else { return nil }
      return name == Self.rate ? (isRateSteady ? rateStep : nil) : ("\(name) \(value.text)", value.text)
    }
    return steps + (state?.fault.map { [($0, $0)] } ?? [])
  }

  private var rateStep: Step? {
    readings[Self.rate].flatMap { $0.value == nil ? nil : (Self.rate, Format.value($0)) }
  }

  private var isRateSteady: Bool { rates.count == 2 && abs(rates[1] - rates[0]) <= Self.steadyFraction * rates[1] }
}
