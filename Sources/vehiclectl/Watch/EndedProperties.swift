// The end of properties that a device no longer has: its next snapshot omits them, and no change reports it.

import Varlink

struct EndedProperties {
  /// The properties in the last snapshot of each device.
  private var known: [String: Set<String>] = [:]

  /// Returns readings without a value for the properties that were in the last snapshot of a device and are not in that of this reply.
  mutating func readings(_ result: Contract.Watch.Result) -> [Contract.Reading] {
    for event in result.events ?? [] where event.name == Contract.Event.removed { known[event.device] = nil }
    return (result.snapshot ?? []).flatMap { device in
      let properties = Set(device.readings.map(\.property))
      let earlier = known.updateValue(properties, forKey: device.name) ?? []
      return earlier.subtracting(properties).sorted().map {
        Contract.Reading(device: device.name, property: $0, time: result.time, reason: "no longer declared")
      }
    }
  }
}
