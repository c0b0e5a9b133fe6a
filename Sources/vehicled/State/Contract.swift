// Devices, links and readings in the types of the Varlink interface.

import Protocols
import Varlink

extension DeviceState {
  /// The current reading of one property.
  func reading(_ index: Int, at boot: Int64) -> Contract.Reading {
    let slot = slots[index]
    let property = schema.properties[index]
    switch content(index, at: boot) {
    case .value(let value):
      return Contract.Reading(
        device: device.name, property: property.name, value: value, unit: property.unit, time: Int(slot.wall),
        age: Double((boot - slot.measuredAt) / .millisecond) / 1000)
    case .absent(let reason):
      return Contract.Reading(
        device: device.name, property: property.name, unit: property.unit, time: absentSince(index), reason: reason)
    }
  }

  /// Appends the readings at these positions as a named JSON list: `"changes":[…]`.
  func write(_ name: StaticString, _ indexes: some Sequence<Int>, at boot: Int64, to bytes: inout [UInt8]) {
    ReadingWriter.list(name, to: &bytes) { bytes in
      for index in indexes {
        ReadingWriter.separate(&bytes)
        write(index, at: boot, to: &bytes)
      }
    }
  }

  /// Appends one reading.
  func write(_ index: Int, at boot: Int64, to bytes: inout [UInt8]) {
    switch content(index, at: boot) {
    case .value(let value):
      let slot = slots[index]
      let age = Double((boot - slot.measuredAt) / .millisecond) / 1000
      ReadingWriter.reading(readingStart, sharedSchema.heads[index], value: value, time: Int(slot.wall), age: age, to: &bytes)
    case .absent(let reason):
      ReadingWriter.reading(readingStart, sharedSchema.heads[index], value: nil, time: absentSince(index), reason: reason, to: &bytes)
    }
  }

  /// The device in the interface's type, with the readings at the selected positions, or with all readings if `selected` is nil.
  func wireDevice(only selected: [Bool]? = nil) -> Contract.Device {
    let boot = Clock.boot()
    return Contract.Device(
      name: device.name, kind: device.kind, state: status, links: device.ports.map(\.contract), holder: device.lease?.holder,
      readings: slots.indices.filter { index in selected.map { index < $0.count && $0[index] } ?? true }.map { reading($0, at: boot) },
      fault: device.fault)
  }

  /// The schema that the device declares.
  var wireSchema: Contract.Schema { Contract.Schema(device: device.name, kind: device.kind, schema) }
}

extension LinkSupervisor {
  /// The link in the interface's type.
  var contract: Contract.Link {
    let (state, reason): (String, String?) =
      switch self.state {
      case .down(let reason): ("down", reason)
      case .connecting: ("connecting", waitReason)
      case .up: ("up", nil)
      }
    return Contract.Link(
      name: name.description, url: url.description, state: state, reason: reason, since: Int(since),
      nextAttempt: nextAttempt.map { Int($0) },
      details: details.isEmpty ? nil : details)
  }
}
