// What the socket shows of a device: states, links and readings in the contract's types.

import Protocols

extension DeviceState {
  /// What is known of one property now.
  func reading(_ index: Int, at boot: Int64) -> Contract.Reading {
    let slot = slots[index]
    let property = schema.properties[index]
    switch content(index, at: boot) {
    case .value(let value):
      return Contract.Reading(
        device: device.name, property: property.name, value: value, unit: property.unit, time: Int(slot.wall),
        age: Double((boot - slot.boot) / .millisecond) / 1000)
    case .absent(let reason):
      return Contract.Reading(device: device.name, property: property.name, unit: property.unit, reason: reason)
    }
  }

  /// Appends the readings at these positions as a named list: `"changes":[…]`.
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
      let age = Double((boot - slot.boot) / .millisecond) / 1000
      ReadingWriter.reading(heads[index], value: value, time: Int(slot.wall), age: age, to: &bytes)
    case .absent(let reason): ReadingWriter.reading(heads[index], value: nil, reason: reason, to: &bytes)
    }
  }

  /// The device with the readings of the chosen positions (nil: all).
  func device(only chosen: [Bool]? = nil) -> Contract.Device {
    let boot = Clock.boot()
    return Contract.Device(
      name: device.name, kind: device.kind, state: word, links: device.ports.map(\.contract), holder: device.lease?.holder,
      readings: slots.indices.filter { index in chosen.map { index < $0.count && $0[index] } ?? true }.map { reading($0, at: boot) },
      fault: device.fault)
  }

  /// What the device declares.
  var contractSchema: Contract.Schema { Contract.Schema(device: device.name, kind: device.kind, schema) }
}

extension Port {
  /// The link as the socket shows it.
  var contract: Contract.Link {
    let (word, reason): (String, String?) =
      switch state {
      case .down(let reason): ("down", reason)
      case .connecting: ("connecting", words)
      case .up: ("up", nil)
      }
    return Contract.Link(
      name: name.description, url: url.description, state: word, reason: reason, since: Int(since),
      nextAttempt: nextAttempt.map { Int($0) },
      details: details.isEmpty ? nil : details)
  }
}
