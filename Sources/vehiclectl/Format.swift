// Text and flat JSON for readings, links and declarations. No I/O: `now` is an argument.

import Glibc
import Protocols
import Varlink

enum Format {
  /// The properties that are positions in degrees.
  static let coordinates: Set<String> = ["latitude", "longitude"]

  /// Formats a duration in seconds: `0.2 s`, `45 s`, `3 min`, `5 h`, `12 d`.
  static func duration(_ seconds: Double) -> String {
    switch max(0, seconds) {
    case ..<9.95: "\(tenths(seconds)) s"
    case ..<120: "\(Int(seconds.rounded())) s"
    case ..<7200: "\(Int(seconds / 60)) min"
    case ..<172_800: "\(Int(seconds / 3600)) h"
    case ..<1e9: "\(Int(seconds / 86_400)) d"
    default: "years"
    }
  }

  /// Formats a number with one decimal place.
  static func tenths(_ number: Double) -> String {
    let tenths = Int(min(max(0, number), 1e9) * 10 + 0.5)
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Formats a number with this many decimal places.
  static func fixed(_ number: Double, _ places: Int) -> String {
    guard number.isFinite, abs(number) < 1e15 else { return "\(number)" }
    let scale = (0..<places).reduce(1) { scale, _ in scale * 10 }
    let rounded = Int((number.magnitude * Double(scale)).rounded())
    let fraction = places > 0 ? ".\(String(scale + rounded % scale).dropFirst())" : ""
    return "\(number < 0 && rounded > 0 ? "-" : "")\(rounded / scale)\(fraction)"
  }

  /// A number for a view: five significant digits, but at least these decimal places if the number has any.
  static func rounded(_ number: Double, least: Int = 1) -> String {
    guard abs(number) >= 1e-6, abs(number) < 1e9 else { return Value.text(number) }
    let places = min(9, max(least, 4 - Int(log10(abs(number)).rounded(.down))))
    let scale = (0..<places).reduce(1.0) { scale, _ in scale * 10 }
    return Value.text((number * scale).rounded() / scale)
  }

  /// A value for a view. Positions have five decimal places, which is a metre.
  static func view(_ value: Contract.Value, of property: String) -> String {
    guard case .float(let number) = value else { return text(value) }
    return rounded(number, least: coordinates.contains(property) ? 5 : 1)
  }

  /// A span of time: `45 s`, `42 min`, `1 h 02 min`, `3 d 4 h`.
  static func span(_ seconds: Double) -> String {
    let whole = Int(max(0, min(seconds, 1e10)).rounded())
    let minutes = (whole + 30) / 60
    switch whole {
    case ..<60: return "\(whole) s"
    case ..<3570: return "\(minutes) min"
    case ..<172_800: return "\(minutes / 60) h \(String(100 + minutes % 60).dropFirst()) min"
    default: return "\(whole / 86_400) d \(whole % 86_400 / 3600) h"
    }
  }

  /// Why a value is missing, and for how long if that is known: `stale (for 12 min)`.
  static func absence(_ reason: String, for seconds: Double?) -> String {
    seconds.map { "\(reason) (for \(span($0)))" } ?? reason
  }

  /// A size in bytes: `512 B`, `3.4 kB`, `1.2 GB`.
  static func size(_ bytes: Int) -> String {
    var (number, unit) = (Double(max(0, bytes)), 0)
    let units = ["B", "kB", "MB", "GB", "TB"]
    while number >= 999.5, unit < units.count - 1 { (number, unit) = (number / 1000, unit + 1) }
    return "\(fixed(number, unit == 0 || number >= 99.95 ? 0 : 1)) \(units[unit])"
  }

  /// A link's state, duration, reason and next attempt.
  static func link(_ link: Contract.Link, now: Double) -> String {
    var text = "\(link.state) for \(duration(now - Double(link.since) / 1e6))"
    if let reason = link.reason { text += ": \(reason)" }
    if let next = link.nextAttempt { text += "; next attempt in \(duration(Double(next) / 1e6 - now))" }
    return text
  }

  /// A link's details: `mtu 23, peer "Veepeak"`.
  static func details(_ link: Contract.Link) -> String? {
    link.details.map { $0.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ") }
  }

  static func style(of link: Contract.Link) -> Style {
    switch link.state {
    case "up": .good
    case "down": .bad
    default: .bold
    }
  }

  /// A value as text. List entries are separated by `; ` because they may contain commas.
  static func text(_ value: Contract.Value) -> String {
    if case .list(let entries) = value { entries.joined(separator: "; ") } else { value.text }
  }

  /// Value and unit.
  static func value(_ reading: Contract.Reading) -> String {
    guard let value = reading.value else { return "" }
    return reading.unit.map { "\(value.text) \($0)" } ?? value.text
  }

  /// The range or choices of a property.
  static func range(_ property: Contract.Property) -> String {
    if let choices = property.choices { return choices.joined(separator: ", ") }
    switch (property.minimum, property.maximum) {
    case (let low?, let high?): return "\(Value.text(low)) to \(Value.text(high))"
    case (let low?, nil): return "from \(Value.text(low))"
    case (nil, let high?): return "to \(Value.text(high))"
    case (nil, nil): return ""
    }
  }

  /// The usage of an action: `query REQUEST [COUNT]`. Secret arguments are prompted for.
  static func usage(_ action: Contract.Action) -> String {
    let given = action.arguments.filter { !$0.secret }.map { $0.optional ? "[\($0.name.uppercased())]" : $0.name.uppercased() }
    let secret = action.arguments.filter(\.secret).map { "(prompts for \($0.name))" }
    return ([action.name] + given + secret).joined(separator: " ")
  }
}

extension JSON {
  /// A value in JSON's own types.
  init(_ value: Contract.Value) {
    self =
      switch value {
      case .bool(let value): .bool(value)
      case .int(let value): .int(value)
      case .float(let value): .float(value)
      case .string(let value): .string(value)
      case .list(let values): .array(values.map(JSON.string))
      }
  }

  /// A flat reading; an unavailable value is null and has a reason.
  init(_ reading: Contract.Reading) {
    self = .members([
      "device": .string(reading.device), "property": .string(reading.property), "value": reading.value.map { JSON($0) } ?? .null,
      "unit": reading.unit.map(JSON.string), "time": reading.time.map(JSON.int), "age": reading.age.map(JSON.float),
      "reason": reading.reason.map(JSON.string),
    ])
  }

  /// A report; absent members are omitted.
  init(_ result: Contract.Call.Result) {
    self = .members([
      "text": result.text.map(JSON.string), "progress": result.progress.map(JSON.float),
      "columns": result.columns.map { .array($0.map(JSON.string)) },
      "rows": result.rows.map { .array($0.map { .array($0.cells.map(JSON.string)) }) }, "data": result.data.map(JSON.string),
    ])
  }

  /// A device with flat readings.
  init(_ device: Contract.Device) {
    let links = device.links.map { link in
      JSON.members([
        "name": .string(link.name), "url": .string(link.url), "state": .string(link.state), "reason": link.reason.map(JSON.string),
        "since": .int(link.since), "nextAttempt": link.nextAttempt.map(JSON.int),
        "details": link.details.map(JSON.texts),
      ])
    }
    self = .members([
      "name": .string(device.name), "kind": .string(device.kind), "state": .string(device.state), "links": .array(links),
      "holder": device.holder.map(JSON.string), "readings": .array(device.readings.map { JSON($0) }),
      "fault": device.fault.map(JSON.string),
    ])
  }

  /// A scan result.
  init(_ found: Contract.Discovery) {
    self = .members([
      "transport": .string(found.transport), "address": .string(found.address), "name": found.name.map(JSON.string),
      "rssi": found.rssi.map(JSON.int), "kind": found.kind.map(JSON.string), "time": .int(found.time),
    ])
  }

  /// A finding of `doctor`.
  init(_ finding: Contract.Finding) {
    self = .members([
      "subject": .string(finding.subject), "state": .string(finding.state), "text": .string(finding.text),
      "remedy": finding.remedy.map(JSON.string),
    ])
  }

  /// A statistic of the daemon.
  init(_ statistic: Contract.Statistic) {
    self = .members([
      "name": .string(statistic.name), "kind": .string(statistic.kind), "help": .string(statistic.help),
      "unit": statistic.unit.map(JSON.string),
      "labels": statistic.labels.map(JSON.texts), "value": .float(statistic.value),
    ])
  }

  /// An event.
  init(_ event: Contract.Event) {
    self = ["event": .string(event.name), "device": .string(event.device), "text": .string(event.text), "time": .int(event.time)]
  }
}
