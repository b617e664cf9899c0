// Cron expressions around changes of the clock. A program with Python's zoneinfo has computed the
// table minute by minute: every change of 2026 to 2030 in three zones, and one zone without
// changes.
#include "durable/cron.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

struct Line {
  std::string_view zone;
  std::string_view expression;
  std::string_view after;
  std::string_view expected;  // in the year of `after`
};

constexpr Line kTable[] = {
    // clang-format off
    // Europe/Berlin: forward at 2026-03-29T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2026-03-27T19:00Z",
     "03-28T01:30Z 03-29T01:00Z 03-30T00:30Z"},
    {"Europe/Berlin", "0 * * * *", "2026-03-28T23:00Z",
     "03-29T00:00Z 03-29T01:00Z 03-29T02:00Z 03-29T03:00Z 03-29T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2026-03-29T00:29Z",
     "03-29T00:30Z 03-29T00:45Z 03-29T01:00Z 03-29T01:15Z 03-29T01:30Z 03-29T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2026-03-27T19:00Z",
     "03-28T11:00Z 03-29T10:00Z 03-30T10:00Z"},
    // Europe/Berlin: back at 2026-10-25T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2026-10-23T19:00Z",
     "10-24T00:30Z 10-25T00:30Z 10-26T01:30Z"},
    {"Europe/Berlin", "0 * * * *", "2026-10-24T23:00Z",
     "10-25T00:00Z 10-25T01:00Z 10-25T02:00Z 10-25T03:00Z 10-25T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2026-10-25T00:29Z",
     "10-25T00:30Z 10-25T00:45Z 10-25T01:00Z 10-25T01:15Z 10-25T01:30Z 10-25T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2026-10-23T19:00Z",
     "10-24T10:00Z 10-25T11:00Z 10-26T11:00Z"},
    // Europe/Berlin: forward at 2027-03-28T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2027-03-26T19:00Z",
     "03-27T01:30Z 03-28T01:00Z 03-29T00:30Z"},
    {"Europe/Berlin", "0 * * * *", "2027-03-27T23:00Z",
     "03-28T00:00Z 03-28T01:00Z 03-28T02:00Z 03-28T03:00Z 03-28T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2027-03-28T00:29Z",
     "03-28T00:30Z 03-28T00:45Z 03-28T01:00Z 03-28T01:15Z 03-28T01:30Z 03-28T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2027-03-26T19:00Z",
     "03-27T11:00Z 03-28T10:00Z 03-29T10:00Z"},
    // Europe/Berlin: back at 2027-10-31T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2027-10-29T19:00Z",
     "10-30T00:30Z 10-31T00:30Z 11-01T01:30Z"},
    {"Europe/Berlin", "0 * * * *", "2027-10-30T23:00Z",
     "10-31T00:00Z 10-31T01:00Z 10-31T02:00Z 10-31T03:00Z 10-31T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2027-10-31T00:29Z",
     "10-31T00:30Z 10-31T00:45Z 10-31T01:00Z 10-31T01:15Z 10-31T01:30Z 10-31T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2027-10-29T19:00Z",
     "10-30T10:00Z 10-31T11:00Z 11-01T11:00Z"},
    // Europe/Berlin: forward at 2028-03-26T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2028-03-24T19:00Z",
     "03-25T01:30Z 03-26T01:00Z 03-27T00:30Z"},
    {"Europe/Berlin", "0 * * * *", "2028-03-25T23:00Z",
     "03-26T00:00Z 03-26T01:00Z 03-26T02:00Z 03-26T03:00Z 03-26T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2028-03-26T00:29Z",
     "03-26T00:30Z 03-26T00:45Z 03-26T01:00Z 03-26T01:15Z 03-26T01:30Z 03-26T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2028-03-24T19:00Z",
     "03-25T11:00Z 03-26T10:00Z 03-27T10:00Z"},
    // Europe/Berlin: back at 2028-10-29T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2028-10-27T19:00Z",
     "10-28T00:30Z 10-29T00:30Z 10-30T01:30Z"},
    {"Europe/Berlin", "0 * * * *", "2028-10-28T23:00Z",
     "10-29T00:00Z 10-29T01:00Z 10-29T02:00Z 10-29T03:00Z 10-29T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2028-10-29T00:29Z",
     "10-29T00:30Z 10-29T00:45Z 10-29T01:00Z 10-29T01:15Z 10-29T01:30Z 10-29T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2028-10-27T19:00Z",
     "10-28T10:00Z 10-29T11:00Z 10-30T11:00Z"},
    // Europe/Berlin: forward at 2029-03-25T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2029-03-23T19:00Z",
     "03-24T01:30Z 03-25T01:00Z 03-26T00:30Z"},
    {"Europe/Berlin", "0 * * * *", "2029-03-24T23:00Z",
     "03-25T00:00Z 03-25T01:00Z 03-25T02:00Z 03-25T03:00Z 03-25T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2029-03-25T00:29Z",
     "03-25T00:30Z 03-25T00:45Z 03-25T01:00Z 03-25T01:15Z 03-25T01:30Z 03-25T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2029-03-23T19:00Z",
     "03-24T11:00Z 03-25T10:00Z 03-26T10:00Z"},
    // Europe/Berlin: back at 2029-10-28T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2029-10-26T19:00Z",
     "10-27T00:30Z 10-28T00:30Z 10-29T01:30Z"},
    {"Europe/Berlin", "0 * * * *", "2029-10-27T23:00Z",
     "10-28T00:00Z 10-28T01:00Z 10-28T02:00Z 10-28T03:00Z 10-28T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2029-10-28T00:29Z",
     "10-28T00:30Z 10-28T00:45Z 10-28T01:00Z 10-28T01:15Z 10-28T01:30Z 10-28T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2029-10-26T19:00Z",
     "10-27T10:00Z 10-28T11:00Z 10-29T11:00Z"},
    // Europe/Berlin: forward at 2030-03-31T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2030-03-29T19:00Z",
     "03-30T01:30Z 03-31T01:00Z 04-01T00:30Z"},
    {"Europe/Berlin", "0 * * * *", "2030-03-30T23:00Z",
     "03-31T00:00Z 03-31T01:00Z 03-31T02:00Z 03-31T03:00Z 03-31T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2030-03-31T00:29Z",
     "03-31T00:30Z 03-31T00:45Z 03-31T01:00Z 03-31T01:15Z 03-31T01:30Z 03-31T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2030-03-29T19:00Z",
     "03-30T11:00Z 03-31T10:00Z 04-01T10:00Z"},
    // Europe/Berlin: back at 2030-10-27T01:00Z
    {"Europe/Berlin", "30 2 * * *", "2030-10-25T19:00Z",
     "10-26T00:30Z 10-27T00:30Z 10-28T01:30Z"},
    {"Europe/Berlin", "0 * * * *", "2030-10-26T23:00Z",
     "10-27T00:00Z 10-27T01:00Z 10-27T02:00Z 10-27T03:00Z 10-27T04:00Z"},
    {"Europe/Berlin", "*/15 * * * *", "2030-10-27T00:29Z",
     "10-27T00:30Z 10-27T00:45Z 10-27T01:00Z 10-27T01:15Z 10-27T01:30Z 10-27T01:45Z"},
    {"Europe/Berlin", "0 12 * * *", "2030-10-25T19:00Z",
     "10-26T10:00Z 10-27T11:00Z 10-28T11:00Z"},
    // America/New_York: forward at 2026-03-08T07:00Z
    {"America/New_York", "30 2 * * *", "2026-03-07T01:00Z",
     "03-07T07:30Z 03-08T07:00Z 03-09T06:30Z"},
    {"America/New_York", "0 * * * *", "2026-03-08T05:00Z",
     "03-08T06:00Z 03-08T07:00Z 03-08T08:00Z 03-08T09:00Z 03-08T10:00Z"},
    {"America/New_York", "*/15 * * * *", "2026-03-08T06:29Z",
     "03-08T06:30Z 03-08T06:45Z 03-08T07:00Z 03-08T07:15Z 03-08T07:30Z 03-08T07:45Z"},
    {"America/New_York", "0 12 * * *", "2026-03-07T01:00Z",
     "03-07T17:00Z 03-08T16:00Z 03-09T16:00Z"},
    // America/New_York: back at 2026-11-01T06:00Z
    {"America/New_York", "30 1 * * *", "2026-10-31T00:00Z",
     "10-31T05:30Z 11-01T05:30Z 11-02T06:30Z"},
    {"America/New_York", "0 * * * *", "2026-11-01T04:00Z",
     "11-01T05:00Z 11-01T06:00Z 11-01T07:00Z 11-01T08:00Z 11-01T09:00Z"},
    {"America/New_York", "*/15 * * * *", "2026-11-01T05:29Z",
     "11-01T05:30Z 11-01T05:45Z 11-01T06:00Z 11-01T06:15Z 11-01T06:30Z 11-01T06:45Z"},
    {"America/New_York", "0 12 * * *", "2026-10-31T00:00Z",
     "10-31T16:00Z 11-01T17:00Z 11-02T17:00Z"},
    // America/New_York: forward at 2027-03-14T07:00Z
    {"America/New_York", "30 2 * * *", "2027-03-13T01:00Z",
     "03-13T07:30Z 03-14T07:00Z 03-15T06:30Z"},
    {"America/New_York", "0 * * * *", "2027-03-14T05:00Z",
     "03-14T06:00Z 03-14T07:00Z 03-14T08:00Z 03-14T09:00Z 03-14T10:00Z"},
    {"America/New_York", "*/15 * * * *", "2027-03-14T06:29Z",
     "03-14T06:30Z 03-14T06:45Z 03-14T07:00Z 03-14T07:15Z 03-14T07:30Z 03-14T07:45Z"},
    {"America/New_York", "0 12 * * *", "2027-03-13T01:00Z",
     "03-13T17:00Z 03-14T16:00Z 03-15T16:00Z"},
    // America/New_York: back at 2027-11-07T06:00Z
    {"America/New_York", "30 1 * * *", "2027-11-06T00:00Z",
     "11-06T05:30Z 11-07T05:30Z 11-08T06:30Z"},
    {"America/New_York", "0 * * * *", "2027-11-07T04:00Z",
     "11-07T05:00Z 11-07T06:00Z 11-07T07:00Z 11-07T08:00Z 11-07T09:00Z"},
    {"America/New_York", "*/15 * * * *", "2027-11-07T05:29Z",
     "11-07T05:30Z 11-07T05:45Z 11-07T06:00Z 11-07T06:15Z 11-07T06:30Z 11-07T06:45Z"},
    {"America/New_York", "0 12 * * *", "2027-11-06T00:00Z",
     "11-06T16:00Z 11-07T17:00Z 11-08T17:00Z"},
    // America/New_York: forward at 2028-03-12T07:00Z
    {"America/New_York", "30 2 * * *", "2028-03-11T01:00Z",
     "03-11T07:30Z 03-12T07:00Z 03-13T06:30Z"},
    {"America/New_York", "0 * * * *", "2028-03-12T05:00Z",
     "03-12T06:00Z 03-12T07:00Z 03-12T08:00Z 03-12T09:00Z 03-12T10:00Z"},
    {"America/New_York", "*/15 * * * *", "2028-03-12T06:29Z",
     "03-12T06:30Z 03-12T06:45Z 03-12T07:00Z 03-12T07:15Z 03-12T07:30Z 03-12T07:45Z"},
    {"America/New_York", "0 12 * * *", "2028-03-11T01:00Z",
     "03-11T17:00Z 03-12T16:00Z 03-13T16:00Z"},
    // America/New_York: back at 2028-11-05T06:00Z
    {"America/New_York", "30 1 * * *", "2028-11-04T00:00Z",
     "11-04T05:30Z 11-05T05:30Z 11-06T06:30Z"},
    {"America/New_York", "0 * * * *", "2028-11-05T04:00Z",
     "11-05T05:00Z 11-05T06:00Z 11-05T07:00Z 11-05T08:00Z 11-05T09:00Z"},
    {"America/New_York", "*/15 * * * *", "2028-11-05T05:29Z",
     "11-05T05:30Z 11-05T05:45Z 11-05T06:00Z 11-05T06:15Z 11-05T06:30Z 11-05T06:45Z"},
    {"America/New_York", "0 12 * * *", "2028-11-04T00:00Z",
     "11-04T16:00Z 11-05T17:00Z 11-06T17:00Z"},
    // America/New_York: forward at 2029-03-11T07:00Z
    {"America/New_York", "30 2 * * *", "2029-03-10T01:00Z",
     "03-10T07:30Z 03-11T07:00Z 03-12T06:30Z"},
    {"America/New_York", "0 * * * *", "2029-03-11T05:00Z",
     "03-11T06:00Z 03-11T07:00Z 03-11T08:00Z 03-11T09:00Z 03-11T10:00Z"},
    {"America/New_York", "*/15 * * * *", "2029-03-11T06:29Z",
     "03-11T06:30Z 03-11T06:45Z 03-11T07:00Z 03-11T07:15Z 03-11T07:30Z 03-11T07:45Z"},
    {"America/New_York", "0 12 * * *", "2029-03-10T01:00Z",
     "03-10T17:00Z 03-11T16:00Z 03-12T16:00Z"},
    // America/New_York: back at 2029-11-04T06:00Z
    {"America/New_York", "30 1 * * *", "2029-11-03T00:00Z",
     "11-03T05:30Z 11-04T05:30Z 11-05T06:30Z"},
    {"America/New_York", "0 * * * *", "2029-11-04T04:00Z",
     "11-04T05:00Z 11-04T06:00Z 11-04T07:00Z 11-04T08:00Z 11-04T09:00Z"},
    {"America/New_York", "*/15 * * * *", "2029-11-04T05:29Z",
     "11-04T05:30Z 11-04T05:45Z 11-04T06:00Z 11-04T06:15Z 11-04T06:30Z 11-04T06:45Z"},
    {"America/New_York", "0 12 * * *", "2029-11-03T00:00Z",
     "11-03T16:00Z 11-04T17:00Z 11-05T17:00Z"},
    // America/New_York: forward at 2030-03-10T07:00Z
    {"America/New_York", "30 2 * * *", "2030-03-09T01:00Z",
     "03-09T07:30Z 03-10T07:00Z 03-11T06:30Z"},
    {"America/New_York", "0 * * * *", "2030-03-10T05:00Z",
     "03-10T06:00Z 03-10T07:00Z 03-10T08:00Z 03-10T09:00Z 03-10T10:00Z"},
    {"America/New_York", "*/15 * * * *", "2030-03-10T06:29Z",
     "03-10T06:30Z 03-10T06:45Z 03-10T07:00Z 03-10T07:15Z 03-10T07:30Z 03-10T07:45Z"},
    {"America/New_York", "0 12 * * *", "2030-03-09T01:00Z",
     "03-09T17:00Z 03-10T16:00Z 03-11T16:00Z"},
    // America/New_York: back at 2030-11-03T06:00Z
    {"America/New_York", "30 1 * * *", "2030-11-02T00:00Z",
     "11-02T05:30Z 11-03T05:30Z 11-04T06:30Z"},
    {"America/New_York", "0 * * * *", "2030-11-03T04:00Z",
     "11-03T05:00Z 11-03T06:00Z 11-03T07:00Z 11-03T08:00Z 11-03T09:00Z"},
    {"America/New_York", "*/15 * * * *", "2030-11-03T05:29Z",
     "11-03T05:30Z 11-03T05:45Z 11-03T06:00Z 11-03T06:15Z 11-03T06:30Z 11-03T06:45Z"},
    {"America/New_York", "0 12 * * *", "2030-11-02T00:00Z",
     "11-02T16:00Z 11-03T17:00Z 11-04T17:00Z"},
    // Australia/Lord_Howe: back at 2026-04-04T15:00Z
    {"Australia/Lord_Howe", "45 1 * * *", "2026-04-03T09:00Z",
     "04-03T14:45Z 04-04T14:45Z 04-05T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2026-04-04T13:00Z",
     "04-04T14:00Z 04-04T15:30Z 04-04T16:30Z 04-04T17:30Z 04-04T18:30Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2026-04-04T14:29Z",
     "04-04T14:30Z 04-04T14:45Z 04-04T15:00Z 04-04T15:15Z 04-04T15:30Z 04-04T15:45Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2026-04-03T09:00Z",
     "04-04T01:00Z 04-05T01:30Z 04-06T01:30Z"},
    // Australia/Lord_Howe: forward at 2026-10-03T15:30Z
    {"Australia/Lord_Howe", "15 2 * * *", "2026-10-02T09:30Z",
     "10-02T15:45Z 10-03T15:30Z 10-04T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2026-10-03T13:30Z",
     "10-03T14:30Z 10-03T16:00Z 10-03T17:00Z 10-03T18:00Z 10-03T19:00Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2026-10-03T14:59Z",
     "10-03T15:00Z 10-03T15:15Z 10-03T15:30Z 10-03T15:45Z 10-03T16:00Z 10-03T16:15Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2026-10-02T09:30Z",
     "10-03T01:30Z 10-04T01:00Z 10-05T01:00Z"},
    // Australia/Lord_Howe: back at 2027-04-03T15:00Z
    {"Australia/Lord_Howe", "45 1 * * *", "2027-04-02T09:00Z",
     "04-02T14:45Z 04-03T14:45Z 04-04T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2027-04-03T13:00Z",
     "04-03T14:00Z 04-03T15:30Z 04-03T16:30Z 04-03T17:30Z 04-03T18:30Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2027-04-03T14:29Z",
     "04-03T14:30Z 04-03T14:45Z 04-03T15:00Z 04-03T15:15Z 04-03T15:30Z 04-03T15:45Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2027-04-02T09:00Z",
     "04-03T01:00Z 04-04T01:30Z 04-05T01:30Z"},
    // Australia/Lord_Howe: forward at 2027-10-02T15:30Z
    {"Australia/Lord_Howe", "15 2 * * *", "2027-10-01T09:30Z",
     "10-01T15:45Z 10-02T15:30Z 10-03T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2027-10-02T13:30Z",
     "10-02T14:30Z 10-02T16:00Z 10-02T17:00Z 10-02T18:00Z 10-02T19:00Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2027-10-02T14:59Z",
     "10-02T15:00Z 10-02T15:15Z 10-02T15:30Z 10-02T15:45Z 10-02T16:00Z 10-02T16:15Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2027-10-01T09:30Z",
     "10-02T01:30Z 10-03T01:00Z 10-04T01:00Z"},
    // Australia/Lord_Howe: back at 2028-04-01T15:00Z
    {"Australia/Lord_Howe", "45 1 * * *", "2028-03-31T09:00Z",
     "03-31T14:45Z 04-01T14:45Z 04-02T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2028-04-01T13:00Z",
     "04-01T14:00Z 04-01T15:30Z 04-01T16:30Z 04-01T17:30Z 04-01T18:30Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2028-04-01T14:29Z",
     "04-01T14:30Z 04-01T14:45Z 04-01T15:00Z 04-01T15:15Z 04-01T15:30Z 04-01T15:45Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2028-03-31T09:00Z",
     "04-01T01:00Z 04-02T01:30Z 04-03T01:30Z"},
    // Australia/Lord_Howe: forward at 2028-09-30T15:30Z
    {"Australia/Lord_Howe", "15 2 * * *", "2028-09-29T09:30Z",
     "09-29T15:45Z 09-30T15:30Z 10-01T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2028-09-30T13:30Z",
     "09-30T14:30Z 09-30T16:00Z 09-30T17:00Z 09-30T18:00Z 09-30T19:00Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2028-09-30T14:59Z",
     "09-30T15:00Z 09-30T15:15Z 09-30T15:30Z 09-30T15:45Z 09-30T16:00Z 09-30T16:15Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2028-09-29T09:30Z",
     "09-30T01:30Z 10-01T01:00Z 10-02T01:00Z"},
    // Australia/Lord_Howe: back at 2029-03-31T15:00Z
    {"Australia/Lord_Howe", "45 1 * * *", "2029-03-30T09:00Z",
     "03-30T14:45Z 03-31T14:45Z 04-01T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2029-03-31T13:00Z",
     "03-31T14:00Z 03-31T15:30Z 03-31T16:30Z 03-31T17:30Z 03-31T18:30Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2029-03-31T14:29Z",
     "03-31T14:30Z 03-31T14:45Z 03-31T15:00Z 03-31T15:15Z 03-31T15:30Z 03-31T15:45Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2029-03-30T09:00Z",
     "03-31T01:00Z 04-01T01:30Z 04-02T01:30Z"},
    // Australia/Lord_Howe: forward at 2029-10-06T15:30Z
    {"Australia/Lord_Howe", "15 2 * * *", "2029-10-05T09:30Z",
     "10-05T15:45Z 10-06T15:30Z 10-07T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2029-10-06T13:30Z",
     "10-06T14:30Z 10-06T16:00Z 10-06T17:00Z 10-06T18:00Z 10-06T19:00Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2029-10-06T14:59Z",
     "10-06T15:00Z 10-06T15:15Z 10-06T15:30Z 10-06T15:45Z 10-06T16:00Z 10-06T16:15Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2029-10-05T09:30Z",
     "10-06T01:30Z 10-07T01:00Z 10-08T01:00Z"},
    // Australia/Lord_Howe: back at 2030-04-06T15:00Z
    {"Australia/Lord_Howe", "45 1 * * *", "2030-04-05T09:00Z",
     "04-05T14:45Z 04-06T14:45Z 04-07T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2030-04-06T13:00Z",
     "04-06T14:00Z 04-06T15:30Z 04-06T16:30Z 04-06T17:30Z 04-06T18:30Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2030-04-06T14:29Z",
     "04-06T14:30Z 04-06T14:45Z 04-06T15:00Z 04-06T15:15Z 04-06T15:30Z 04-06T15:45Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2030-04-05T09:00Z",
     "04-06T01:00Z 04-07T01:30Z 04-08T01:30Z"},
    // Australia/Lord_Howe: forward at 2030-10-05T15:30Z
    {"Australia/Lord_Howe", "15 2 * * *", "2030-10-04T09:30Z",
     "10-04T15:45Z 10-05T15:30Z 10-06T15:15Z"},
    {"Australia/Lord_Howe", "0 * * * *", "2030-10-05T13:30Z",
     "10-05T14:30Z 10-05T16:00Z 10-05T17:00Z 10-05T18:00Z 10-05T19:00Z"},
    {"Australia/Lord_Howe", "*/15 * * * *", "2030-10-05T14:59Z",
     "10-05T15:00Z 10-05T15:15Z 10-05T15:30Z 10-05T15:45Z 10-05T16:00Z 10-05T16:15Z"},
    {"Australia/Lord_Howe", "0 12 * * *", "2030-10-04T09:30Z",
     "10-05T01:30Z 10-06T01:00Z 10-07T01:00Z"},
    {"Europe/Berlin", "*/15 2 * * *", "2026-03-28T23:00Z",
     "03-29T01:00Z 03-30T00:00Z 03-30T00:15Z 03-30T00:30Z 03-30T00:45Z 03-31T00:00Z 03-31T00:15Z 03-31T00:30Z 03-31T00:45Z 04-01T00:00Z 04-01T00:15Z 04-01T00:30Z 04-01T00:45Z 04-02T00:00Z"},
    {"Europe/Berlin", "*/15 2 * * *", "2026-10-24T23:00Z",
     "10-25T00:00Z 10-25T00:15Z 10-25T00:30Z 10-25T00:45Z 10-26T01:00Z 10-26T01:15Z 10-26T01:30Z 10-26T01:45Z 10-27T01:00Z 10-27T01:15Z 10-27T01:30Z 10-27T01:45Z 10-28T01:00Z 10-28T01:15Z"},
    {"America/New_York", "*/15 1,2 * * *", "2026-03-08T05:00Z",
     "03-08T06:00Z 03-08T06:15Z 03-08T06:30Z 03-08T06:45Z 03-08T07:00Z 03-09T05:00Z 03-09T05:15Z 03-09T05:30Z 03-09T05:45Z 03-09T06:00Z 03-09T06:15Z 03-09T06:30Z 03-09T06:45Z 03-10T05:00Z"},
    {"America/New_York", "*/15 1,2 * * *", "2026-11-01T04:00Z",
     "11-01T05:00Z 11-01T05:15Z 11-01T05:30Z 11-01T05:45Z 11-01T07:00Z 11-01T07:15Z 11-01T07:30Z 11-01T07:45Z 11-02T06:00Z 11-02T06:15Z 11-02T06:30Z 11-02T06:45Z 11-02T07:00Z 11-02T07:15Z"},
    {"Europe/Berlin", "30 */2 * * *", "2026-03-28T23:00Z",
     "03-28T23:30Z 03-29T02:30Z 03-29T04:30Z 03-29T06:30Z 03-29T08:30Z 03-29T10:30Z"},
    {"Europe/Berlin", "30 */2 * * *", "2026-10-24T23:00Z",
     "10-25T00:30Z 10-25T01:30Z 10-25T03:30Z 10-25T05:30Z 10-25T07:30Z 10-25T09:30Z"},
    {"Australia/Lord_Howe", "*/10 1,2 * * *", "2026-04-04T13:00Z",
     "04-04T14:00Z 04-04T14:10Z 04-04T14:20Z 04-04T14:30Z 04-04T14:40Z 04-04T14:50Z 04-04T15:30Z 04-04T15:40Z 04-04T15:50Z 04-04T16:00Z 04-04T16:10Z 04-04T16:20Z 04-05T14:30Z"},
    {"Australia/Lord_Howe", "*/10 1,2 * * *", "2026-10-03T13:30Z",
     "10-03T14:30Z 10-03T14:40Z 10-03T14:50Z 10-03T15:00Z 10-03T15:10Z 10-03T15:20Z 10-03T15:30Z 10-03T15:40Z 10-03T15:50Z 10-04T14:00Z 10-04T14:10Z 10-04T14:20Z 10-04T14:30Z"},
    {"Asia/Kolkata", "30 2 * * *", "2026-03-29T00:00Z",
     "03-29T21:00Z 03-30T21:00Z 03-31T21:00Z"},
    {"Asia/Kolkata", "0 * * * *", "2026-03-29T00:00Z",
     "03-29T00:30Z 03-29T01:30Z 03-29T02:30Z 03-29T03:30Z"},
    {"Asia/Kolkata", "*/15 * * * *", "2026-03-29T00:00Z",
     "03-29T00:15Z 03-29T00:30Z 03-29T00:45Z 03-29T01:00Z 03-29T01:15Z"},
    {"Asia/Kolkata", "0 12 * * *", "2026-03-29T00:00Z",
     "03-29T06:30Z 03-30T06:30Z 03-31T06:30Z"},
    {"Asia/Kolkata", "30 2 * * *", "2030-10-27T00:00Z",
     "10-27T21:00Z 10-28T21:00Z 10-29T21:00Z"},
    {"Asia/Kolkata", "0 * * * *", "2030-10-27T00:00Z",
     "10-27T00:30Z 10-27T01:30Z 10-27T02:30Z 10-27T03:30Z"},
    {"Asia/Kolkata", "*/15 * * * *", "2030-10-27T00:00Z",
     "10-27T00:15Z 10-27T00:30Z 10-27T00:45Z 10-27T01:00Z 10-27T01:15Z"},
    {"Asia/Kolkata", "0 12 * * *", "2030-10-27T00:00Z",
     "10-27T06:30Z 10-28T06:30Z 10-29T06:30Z"},
    // clang-format on
};

int digits(std::string_view text, std::size_t from, std::size_t count) {
  int value = 0;
  std::from_chars(text.data() + from, text.data() + from + count, value);
  return value;
}

// 2026-03-29T01:00Z
std::int64_t millis(std::string_view text) {
  using namespace std::chrono;
  const sys_days date = year(digits(text, 0, 4)) / month(unsigned(digits(text, 5, 2))) /
                        std::chrono::day(unsigned(digits(text, 8, 2)));
  const auto time = hours(digits(text, 11, 2)) + minutes(digits(text, 14, 2));
  return milliseconds(date.time_since_epoch() + time).count();
}

TEST(CronDstTest, EveryLineOfTheTable) {
  int lines = 0;
  for (const Line& line : kTable) {
    SCOPED_TRACE(std::string(line.zone) + " " + std::string(line.expression) + " after " +
                 std::string(line.after));
    const Result<TimeZone> zone = TimeZone::find(line.zone);
    ASSERT_TRUE(zone.has_value()) << zone.error().message;
    const Result<Cron> cron = Cron::parse(line.expression);
    ASSERT_TRUE(cron.has_value());
    std::int64_t at = millis(line.after);
    for (std::string_view rest = line.expected; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      const std::int64_t expected =
          millis(std::string(line.after.substr(0, 5)) + std::string(word));
      // From every moment before it, not only from the last occurrence.
      for (const std::int64_t from : {at, at + 1, at + (expected - at) / 2, expected - 1}) {
        const auto next = cron->next(from, *zone);
        ASSERT_TRUE(next.has_value());
        EXPECT_EQ(*next, expected) << word << ", " << (*next - expected) / 60'000 << " minutes off";
      }
      at = expected;
    }
    ++lines;
  }
  EXPECT_EQ(lines, 136);
}

TEST(CronDstTest, WhatFollowsRealTimeIsAnHourThatIsAStarOrAStepOfIt) {
  for (const char* real :
       {"0 * * * *", "0 */3 * * *", "0 ? * * *", "@hourly", "@minutely", "0 0 * * * *"})
    EXPECT_TRUE(Cron::parse(real)->follows_real_time()) << real;
  for (const char* fixed : {"0 2 * * *", "0 0-23 * * *", "0 1,2 * * *", "@daily", "* 0-23/2 * * *"})
    EXPECT_FALSE(Cron::parse(fixed)->follows_real_time()) << fixed;
}

TEST(CronDstTest, ADayThatAPlaceSkippedWholeRunsOnceAtItsEnd) {
  // Samoa left out 30 December 2011; it went from 29 December 24:00 (10:00Z) to 31 December.
  const TimeZone samoa = *TimeZone::find("Pacific/Apia");
  const auto next = Cron::parse("0 12 * * *")->next(millis("2011-12-29T22:30Z"), samoa);
  EXPECT_EQ(*next, millis("2011-12-30T10:00Z"));
  EXPECT_EQ(*Cron::parse("0 12 * * *")->next(*next, samoa), millis("2011-12-30T22:00Z"));
}

TEST(CronDstTest, MidnightThatIsSkippedIsTheFirstMomentOfTheDay) {
  // Havana goes from 0:00 to 1:00 on 8 March 2026.
  const TimeZone havana = *TimeZone::find("America/Havana");
  EXPECT_EQ(*Cron::parse("@daily")->next(millis("2026-03-08T04:00Z"), havana),
            millis("2026-03-08T05:00Z"));
}

}  // namespace
}  // namespace hearth::durable
